r"""Sums of two integers of 2-22 digits in which no column carries, so every carry in an answer is a mistake.

The benchmark is that of "测试大模型的基础计算能力", including its prompt and classes. The answer is the content of the
last \boxed{...} of the response; thoughts do not count.

strict  that box, cleaned, is an ASCII integer
loose   the same, or else the last number of the response, if it is an integer (lab/text/written_numbers.py)
final   the number that the response ends with, however it is written (lab/text/final_number.py)
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from lab.benchmarks.benchmark import Benchmark
from lab.benchmarks.results import Sample, Scored, Sum, SumsSummary, answered
from lab.benchmarks.sums.final_number import final_number, last_box
from lab.benchmarks.sums.scoring import as_integer, ask, counts, distinct, scored, summary
from lab.config.evaluation import CarryFreeConfig
from lab.engines.engine import Completion, Request
from lab.numbers.philox import philox
from lab.numbers.taxonomy import unit_step
from lab.text.written_numbers import last

PROMPTS = {
    "zh": r"列竖式计算表达式的值，计算结果放 \boxed{} 中，例如结果为2, 写成 \boxed{2}。表达式:",  # noqa: RUF001
    "en": r"Work out the value of the expression in columns and put the result in \boxed{}; for example, if the result "
    r"is 2, write \boxed{2}. Expression:",
}
EXAMPLE = "2"
"""The example result that both prompts contain."""

ParseError = Literal["no_box", "empty_box", "not_an_integer", "truncated"]
PARSE_ERRORS: tuple[ParseError, ...] = get_args(ParseError)

PLACES = ("text", "reasoning")

_LAYOUT = re.compile(r"\\[!,:;]|\{,\}|[ ,]")
_SEPARATORS = re.compile(r"(?:\\[!,:;]|\{,\}|,)++(?=[0-9]{3})")
"""{,} is how LaTeX writes a comma between digits."""
_NO_SEPARATORS = str.maketrans("", "", r"\!,:;{}")


class CarryFree(Benchmark[Sum]):
    """Sums without carries: how they are asked, read and classified; see the module's docstring."""

    def __init__(self, config: CarryFreeConfig, seed: int) -> None:
        self.config = config
        shortest, longest = config.lengths
        self.problems = [
            item
            for length in range(shortest, longest + 1)
            for item in distinct(_sums(length, seed), min(config.problems_per_length, _space(length)))
        ]

    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        prompt = PROMPTS[self.config.language]
        return [ask(f"{prompt}{item.int1}+{item.int2}", self.config.max_tokens) for item in self.problems]

    def score(self, index: int, completion: Completion) -> Scored:
        """Both readings and the outcome.

        Remarks say why there is no answer, which flags hold, and where a wrong response mentions the right result.
        """
        answer = self.problems[index].answer
        given, parse_error = extract(completion)
        written = last(completion.text)
        loose = given or (written and written.integer())
        found = scored(answer, strict=given, loose=loose, final=final_number(completion.text))
        wrong = not found.readings["strict"].exact_match
        places = [place for place in PLACES if wrong and mentions(getattr(completion, place), answer)]
        remarks = {
            **found.remarks,
            "parse_error": parse_error,
            "unit_step": given is not None and unit_step(given, answer),
            "echoes_example": wrong and given == EXAMPLE,
            "right_in_text": places,
        }
        return found._replace(remarks=remarks)

    def summarize(self, samples: Sequence[Sample]) -> SumsSummary:
        remarks = [sample.remarks for sample in answered(samples)]
        places = counts((place for found in remarks for place in found["right_in_text"]), PLACES)
        return summary(
            samples,
            parse_errors=counts((found["parse_error"] for found in remarks), PARSE_ERRORS),
            flags={flag: sum(found[flag] for found in remarks) for flag in ("unit_step", "echoes_example")},
            right_in_text={**places, "anywhere": sum(bool(found["right_in_text"]) for found in remarks)},
        )


def extract(completion: Completion) -> tuple[str | None, ParseError | None]:
    r"""The answer in the last box, or the reason why there is none.

    White space around the content is dropped; so are spaces, commas (also as {,}) and \! \, \: \; inside it. A box that
    is never closed does not count.
    """
    box = last_box(completion.text)
    if box is None:
        return None, "truncated" if completion.finish_reason == "length" else "no_box"
    content = _LAYOUT.sub("", box.strip())
    if not content:
        return None, "empty_box"
    given = as_integer(content)
    return given, None if given else "not_an_integer"


def mentions(text: str, answer: str) -> bool:
    """Whether a text contains a number, with or without separators, and not only as a part of a longer one."""
    if answer not in text.translate(_NO_SEPARATORS):
        return False
    # The number comes before what must not precede it, because a search for fixed characters is fast.
    alone = rf"{answer}(?<![0-9]{answer})(?<![0-9]\.{answer})(?![0-9]|\.[0-9])"
    return re.search(alone, _SEPARATORS.sub("", text)) is not None


def _sums(length: int, seed: int) -> Iterator[Sum]:
    generator = philox("carry_free", length, seed)
    while True:
        words_2L = generator.random_raw(2 * length).reshape(2, length)
        # The first digits are not 0, and no digit of the second number causes a carry.
        a_L = words_2L[0] % 10
        a_L[0] = words_2L[0, 0] % 8 + 1
        b_L = words_2L[1] % (10 - a_L)
        b_L[0] = words_2L[1, 0] % (9 - a_L[0]) + 1
        yield Sum(*((digits_L + ord("0")).astype(np.uint8).tobytes().decode() for digits_L in (a_L, b_L)))


def _space(length: int) -> int:
    """How many distinct sums of a length there are. Pairs are unordered; they are counted from the ordered pairs and
    the pairs of equal numbers."""
    pairs, doubles = 36 * 55 ** (length - 1), 4 * 5 ** (length - 1)
    return (pairs + doubles) // 2
