r"""The sum of two integers of 2-30 digits, and nothing but the sum: tests arithmetic and instruction following.

strict  the response, stripped of white space, is an ASCII integer: an optional sign, and digits
loose   the first ASCII integer in the response that is not a part of something else (lab/text/written_numbers.py)
final   the number that the response ends with: in a box, in bold, with thousands separators, or plain
        (lab/text/final_number.py)

Answers are compared by value: 007 is 7, +5 is 5.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from lab.benchmarks.benchmark import Benchmark
from lab.benchmarks.results import Sample, Scored, Sum, SumsSummary, answered
from lab.benchmarks.sums.final_number import final_number, marked
from lab.benchmarks.sums.scoring import as_integer, ask, counts, distinct, scored, summary
from lab.config.evaluation import TwoIntegersConfig
from lab.engines.engine import Completion, Request
from lab.numbers.philox import philox
from lab.numbers.taxonomy import INTEGER, TAGS
from lab.text.written_numbers import first

SHORTEST, LONGEST = 2, 30

PROMPT = (
    "Provide the sum of the two numbers. Don't output anything else. Only output the sum of the two numbers without "
    "anything additional. Only output the final number, no calculation, no explanation, just the final number without "
    'any text.: "{int1}" "{int2}"'
)

FormatFailure = Literal[
    "truncated", "empty", "words", "not_ascii", "scientific_notation", "shows_work", "explanation", "other"
]
FORMAT_FAILURES: tuple[FormatFailure, ...] = get_args(FormatFailure)

_SEPARATORS = " \u00a0\u2009\u202f,\uff0c_'\u2019"
_OTHERWISE_WRITTEN = re.compile(rf"[+-]?\d(?:[0-9{_SEPARATORS}]++|\d)*+(?<=\d)")
_TWO_SEPARATORS = re.compile(f"[{_SEPARATORS}]{{2}}")
# each begins with fixed characters, which re finds fast
_SCIENTIFIC = (
    re.compile(r"e(?<=[0-9]e)[+-]?[0-9]"),
    re.compile(r"E(?<=[0-9]E)[+-]?[0-9]"),
    re.compile(r"10\s*+(?:\^|\*\*\s*+[0-9]|[⁰¹²³⁴-⁹])"),
)
_EXPRESSION = re.compile(r"[0-9](?![0-9])[^0-9A-Za-z+]*\+[^0-9A-Za-z]*[0-9]")
_DECIMAL = re.compile(r"\d")
_WORD = re.compile(r"[^\W\d_](?<![\\\w].)")
r"""The start of a word. A LaTeX command such as \boxed is not a word, nor is the px of 46px."""


class TwoIntegers(Benchmark[Sum]):
    """Sums of two integers: how they are asked, read and classified; see the module's docstring."""

    def __init__(self, config: TwoIntegersConfig, seed: int) -> None:
        self.config = config
        self.problems = distinct(_sums(seed), config.problems)

    def requests(self, count_tokens: Callable[[str], int] = len) -> list[Request]:
        return [ask(PROMPT.format(**item._asdict()), self.config.max_tokens) for item in self.problems]

    def score(self, index: int, completion: Completion) -> Scored:
        """All readings and the outcome. Remarks say why a response is not an integer, or describe a wrong sum."""
        truth = self.problems[index].answer
        given = as_integer(completion.text.strip())
        loose = first(completion.text, INTEGER.pattern)
        found = scored(truth, strict=given, loose=loose, final=final_number(completion.text))
        remarks = {**found.remarks, "format_failure": None, "wrong_sum": None}
        if given is None:
            remarks["format_failure"] = format_failure(completion)
        elif not found.readings["strict"].exact_match:
            remarks["wrong_sum"] = [tag for tag, holds in TAGS.items() if holds(given, truth)]
        return found._replace(remarks=remarks)

    def summarize(self, samples: Sequence[Sample]) -> SumsSummary:
        remarks = [sample.remarks for sample in answered(samples)]
        return summary(
            samples,
            format_failures=counts((found["format_failure"] for found in remarks), FORMAT_FAILURES),
            wrong_sums=counts((tag for found in remarks for tag in found["wrong_sum"] or ()), TAGS),
        )


def format_failure(completion: Completion) -> FormatFailure:
    """The kind of a response that is not an ASCII integer: the first of these that fits.

    truncated            the budget ran out
    empty                nothing but white space
    words                no digit at all
    not_ascii            a number in digits of another script, or with underscores or separators
    scientific_notation  such as 1.2e5: in the box or in bold, if a number is there; otherwise anywhere in the text
    shows_work           an expression or an equation
    explanation          a number among words
    other                anything else
    """
    text = completion.text.strip()
    if completion.finish_reason == "length":
        return "truncated"
    if not text:
        return "empty"
    if not _DECIMAL.search(text) and not any(map(str.isdigit, set(text))):
        return "words"
    if _OTHERWISE_WRITTEN.fullmatch(text) and not _TWO_SEPARATORS.search(text):
        return "not_ascii"
    place = marked(text) or text
    if any(pattern.search(place) for pattern in _SCIENTIFIC):
        return "scientific_notation"
    if "=" in text or ("+" in text and _EXPRESSION.search(text)):
        return "shows_work"
    return "explanation" if _WORD.search(text) else "other"


def _sums(seed: int) -> Iterator[Sum]:
    generator = philox("two_integers", seed)
    while True:
        yield Sum(_integer(generator), _integer(generator))


def _integer(generator: np.random.Philox) -> str:
    length, first, *others = generator.random_raw(1 + LONGEST).tolist()
    rest = others[: SHORTEST + length % (LONGEST - SHORTEST + 1) - 1]
    return "".join(map(str, (1 + first % 9, *(word % 10 for word in rest))))
