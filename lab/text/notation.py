"""How models from scratch write numbers: turns a problem into words, one token each, and words back into a number.

    <begin> 1 2 3 <add_integer> 4 5 = 1 6 8 <end>
    <begin> 1 . 5 e 8 <to_float_scientific> = 1 5 0 0 0 0 0 0 0 . 0 <end>

Number Cookbook (arXiv 2411.03766), section 3.3 and appendix A.4: digits may be grouped, reversed, padded with zeros, or
preceded by hints of their places. This differs from the paper's released code:

- Aligned groups are cut at their true places first and then reversed. The released code reversed first, so that groups
  were counted from the wrong end. The other kinds ignore places: they cut the digits as they are written.
- A part is read back by joining its groups and reversing the whole. The released code reversed decimals again for each
  token, which scrambled decimals of three or more tokens; Table 16 shows this for every reversal of decimals.
- Each task has its own operator, and ".", "/" and "e" are different separators. The released code had one token for
  all operators and one for all separators.
- The place of a decimal counts from the point, in floats too, so that equal places of two numbers have equal hints.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from operator import add

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.errors import TaskError
from lab.numbers.philox import philox
from lab.numbers.representations import Float, Fraction, Integer, Representation, Scientific, split_parts
from lab.numbers.sampling import Problem
from lab.numbers.tasks import Task
from lab.text.digit_groups import groups, vocabulary

PAD, BEGIN, END, EQUALS = "<pad>", "<begin>", "<end>", "="
DIGITS = tuple("0123456789")

SEPARATORS: dict[Representation, str] = {Integer: "", Float: ".", Fraction: "/", Scientific: ".e"}
_PARTS = 3
"""The largest number of parts of a number."""

_REVERSED: dict[str, tuple[str, ...]] = {
    "none": (),
    "integer": ("right",),
    "decimal": ("left",),
    "each": ("right", "left"),
    "total": ("right", "left"),
    "answer": ("right", "left"),
}
"""The alignments of the parts whose digits are reversed, for each value of `format.reverse`."""


class ScratchNotation:
    """How a model from scratch reads and writes the problems of some tasks, in words that are one token each.

    The words are a function of the problem and of `seed`, which decides what is random (in training, it is the index of
    the problem). Without a seed, they are a function of the problem alone.
    """

    words_a_digit = 1
    """The largest number of words that one digit of an answer takes."""
    ones_first = True
    """Whether the integers of answers are written with the ones digit first."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {(task.name, task.representation.name): task for task in tasks}
        self.tasks = list(self._tasks.values())
        """The tasks that it can write."""

    @functools.cached_property
    def vocabulary(self) -> list[str]:
        """Every possible word, in the order of their ids."""
        raise NotImplementedError

    def question(self, problem: Problem, seed: int | None = None) -> list[str]:
        """The words after <begin>, up to and including "=". Raises TaskError for a problem of another task."""
        raise NotImplementedError

    def answer(self, problem: Problem, seed: int | None = None) -> list[str]:
        """The words between "=" and <end>."""
        raise NotImplementedError

    def read(self, words: Sequence[str], representation: Representation) -> str | None:
        """The number that `words` (without <end>) write, with its digits in natural order; None if they write none."""
        raise NotImplementedError

    def _task(self, problem: Problem) -> Task:
        """The task of a problem. Raises TaskError if the notation does not have it."""
        found = self._tasks.get((problem.task, problem.representation))
        if found is None:
            known = ", ".join(task.key for task in self.tasks)
            raise TaskError(f"the notation has no task {problem.task}_{problem.representation}; it has: {known}")
        return found


class Notation(ScratchNotation):
    """How one tokenizer and format write the problems of some tasks.

    The seed decides how random groups are cut, and at which place hints start; without a seed, hints start at 0.
    """

    def __init__(self, tokenizer: TokenizerConfig, format: FormatConfig, tasks: Sequence[Task]) -> None:
        """Raises TaskError if one task needs the trailing zeros of its answers kept and another needs them stripped."""
        super().__init__(tasks)
        self._tokenizer, self._format = tokenizer, format
        self._stripped = {task.answer for task in tasks if self._pads_answer(task)}
        self._check_that_zeros_have_one_meaning(tasks)
        self._digit_groups = vocabulary(tokenizer.kind, tokenizer.digits)
        self._known_groups = frozenset(self._digit_groups)
        self._hints = [[f"<{part}.{place}>" for place in range(format.largest_hint)] for part in range(_PARTS)]
        self._known_hints = [frozenset(hints) for hints in self._hints]
        self._reversed = _REVERSED[format.reverse]
        self._total = format.reverse in ("total", "answer")
        self._reversed_question = format.reverse != "answer"
        self._hinted_question = format.index_hints != "none"
        self._hinted_answer = format.index_hints == "both"
        self.words_a_digit = 1 + self._hinted_answer
        self.ones_first = "right" in self._reversed

    @functools.cached_property
    def vocabulary(self) -> list[str]:
        """Special words, operators, separators, hints if the format has them, and groups of digits."""
        operators = [f"<{task.key}>" for task in self.tasks]
        hints = [hint for hints in self._hints for hint in hints] if self._hinted_question else []
        return [PAD, BEGIN, END, EQUALS, *operators, ".", "/", "e", *hints, *self._digit_groups]

    def question(self, problem: Problem, seed: int | None = None) -> list[str]:
        """See `ScratchNotation`. Like `answer`, it also raises TaskError for a problem with more places than there are
        hints."""
        task = self._task(problem)
        operands = self._operands(problem, task)
        starts = self._starts(problem, task, operands, seed) if self._hinted_question else None
        words = _random_words("question", problem, seed) if self._tokenizer.kind == "random" else None
        turned = self._reversed_question
        written = self._write(operands[0], task.representation, starts, words, turned)
        written.append(f"<{task.key}>")
        if task.second is not None:
            written += self._write(operands[1], task.second, starts, words, turned)
        written.append(EQUALS)
        return written

    def answer(self, problem: Problem, seed: int | None = None) -> list[str]:
        """See `ScratchNotation`. If the seed is the same, hints start at the same place as in the question."""
        task = self._task(problem)
        operands = self._operands(problem, task)
        starts = self._starts(problem, task, operands, seed) if self._hinted_answer else None
        words = _random_words("answer", problem, seed) if self._tokenizer.kind == "random" else None
        return self._write(self._answer_parts(problem, task, operands), task.answer, starts, words)

    def read(self, words: Sequence[str], representation: Representation) -> str | None:
        """See `ScratchNotation`.

        The text keeps the digits that were written: 0 7 is 07, which is not the answer 7. Padding zeros are removed
        only if the format pads answers of this representation (pad=all or pad=answer, and a task with such answers is
        padded). Then leading zeros are removed from parts that are counted from the ones digit, and trailing zeros from
        decimals. A part keeps at least one digit, and the leading digit of scientific notation is never padded, so it
        stays.

        Only the digits matter, not the groups: a model may cut them differently. If answers have hints, one must stand
        before every group and name the right part; if they have none, no hint may appear. The places in hints are
        ignored, because the order of the digits decides.
        """
        parts: list[list[str]] = [[]]
        separators = ""
        for word in words:
            if word in (".", "/", "e"):
                separators += word
                parts.append([])
            else:
                parts[-1].append(word)
        if self._total:
            parts.reverse()
            separators = separators[::-1]
        if separators != SEPARATORS[representation]:
            return None
        numerals: list[str] = []
        for index, (part, alignment) in enumerate(zip(parts, representation.alignment, strict=True)):
            digits = self._read_part(part, index, alignment)
            if digits is None:
                return None
            leading_digit = representation is Scientific and index == 0
            if representation in self._stripped and not leading_digit:
                digits = (digits.lstrip("0") if alignment == "right" else digits.rstrip("0")) or "0"
            numerals.append(digits)
        return "".join(map(add, numerals, [*separators, ""]))

    def _read_part(self, words: list[str], part: int, alignment: str) -> str | None:
        if self._hinted_answer:
            if len(words) % 2 or not self._known_hints[part].issuperset(words[::2]):
                return None
            words = words[1::2]
        if not words or not self._known_groups.issuperset(words):
            return None
        digits = "".join(words)
        return digits[::-1] if alignment in self._reversed else digits

    def _write(
        self,
        parts: list[str],
        representation: Representation,
        starts: list[int] | None,
        random: Iterator[int] | None,
        turn: bool = True,
    ) -> list[str]:
        kind, size = self._tokenizer.kind, self._tokenizer.digits
        written: list[list[str]] = []
        for index, (digits, alignment) in enumerate(zip(parts, representation.alignment, strict=True)):
            turned = turn and alignment in self._reversed
            if turned and kind != "aligned":
                cut = _mirrored(groups(digits[::-1], kind, size, alignment, random))
            else:
                cut = groups(digits, kind, size, alignment, random)
            hints = None if starts is None else self._hints_of(cut, index, alignment, starts[index])
            if turned:
                cut = _mirrored(cut)
                hints = hints and hints[::-1]
            written.append(cut if hints is None else [word for pair in zip(hints, cut, strict=True) for word in pair])
        separators = SEPARATORS[representation]
        if turn and self._total:
            written.reverse()
            separators = separators[::-1]
        words = written[0]
        for separator, part in zip(separators, written[1:], strict=True):
            words.append(separator)
            words += part
        return words

    def _hints_of(self, cut: list[str], part: int, alignment: str, start: int) -> list[str]:
        """The hint of each group: the place of its digit nearest to the ones digit, or to the point for decimals."""
        hints = self._hints[part]
        place = start
        found: list[str] = []
        for group in reversed(cut) if alignment == "right" else cut:
            found.append(hints[place])
            place += len(group)
        return found[::-1] if alignment == "right" else found

    def _starts(self, problem: Problem, task: Task, operands: list[list[str]], seed: int | None) -> list[int]:
        """The place at which each part's hints start: that of its ones digit or first decimal.

        It is the same in all numbers of a problem. Places count digits, not groups, so that the seed does not decide
        whether a problem can be written.
        """
        numbers = [*operands, self._answer_parts(problem, task, operands)] if self._hinted_answer else operands
        widths = [max(map(len, same)) for same in itertools.zip_longest(*numbers, fillvalue="")]
        most = self._format.largest_hint
        if max(widths) > most:
            raise TaskError(
                f"a problem of {task.key} has {max(widths)} digits in a part (answers too if index_hints=both), but "
                f"hints end at {most} digits: raise format.largest_hint"
            )
        if seed is None:
            return [0] * len(widths)
        return [word % (most - width + 1) for word, width in zip(_words_of_starts(problem, seed), widths, strict=False)]

    def _operands(self, problem: Problem, task: Task) -> list[list[str]]:
        """The digits of the parts of each operand, padded if the format says so."""
        first = split_parts(problem.a, task.representation)
        if task.second is None or problem.b is None:
            return [first]
        second = split_parts(problem.b, task.second)
        if self._pads_operands(task):
            return [_padded(first, second, task.representation), _padded(second, first, task.representation)]
        return [first, second]

    def _answer_parts(self, problem: Problem, task: Task, operands: list[list[str]]) -> list[str]:
        parts = split_parts(problem.answer, task.answer)
        for operand in operands if self._pads_answer(task) else ():
            parts = _padded(parts, operand, task.answer, self._format.carry_place)
        return parts

    def _pads_operands(self, task: Task) -> bool:
        return self._format.pad in ("operands", "all") and _aligned(task)

    def _pads_answer(self, task: Task) -> bool:
        return self._format.pad in ("answer", "all") and _aligned(task) and task.answer is task.representation

    def _check_that_zeros_have_one_meaning(self, tasks: Sequence[Task]) -> None:
        """Refuses sig together with padded scientific answers.

        In answers of sig, trailing zeros are significant figures. `read` knows only the representation, so it would
        remove them as padding.
        """
        padded = [task.key for task in tasks if self._pads_answer(task) and task.answer is Scientific]
        figures = [task.key for task in tasks if task.name == "sig"]
        if padded and figures:
            raise TaskError(
                f"format.pad={self._format.pad} pads answers of {padded[0]} with zeros that count as figures in "
                f"{figures[0]}: use format.pad=operands, or one of these tasks only"
            )


def _aligned(task: Task) -> bool:
    """Whether a task has two numbers whose places can be aligned. A parameter is not such a number."""
    return task.second is task.representation and not task.has_parameter


def _padded(parts: list[str], others: list[str], representation: Representation, more: int = 0) -> list[str]:
    """The parts, padded with zeros to the widths of the other number's parts: before integers, after decimals. Integers
    are padded to `more` digits more, except for the leading digit of scientific notation."""
    widths = [len(other) + more for other in others]
    if representation is Scientific:
        widths[0] -= more
    return [
        part.rjust(width, "0") if alignment == "right" else part.ljust(len(other), "0")
        for part, other, width, alignment in zip(parts, others, widths, representation.alignment, strict=True)
    ]


def _mirrored(cut: list[str]) -> list[str]:
    return [group[::-1] for group in reversed(cut)]


def _random_words(purpose: str, problem: Problem, seed: int | None) -> Iterator[int]:
    """An endless stream of random integers for one purpose, problem and seed."""
    generator = philox(purpose, seed, problem.task, problem.representation, problem.a, problem.b)
    return iter(generator.random_raw, None)


@functools.lru_cache(maxsize=1)  # the question and the answer of a sample use the same words
def _words_of_starts(problem: Problem, seed: int) -> list[int]:
    return list(itertools.islice(_random_words("hints", problem, seed), _PARTS))
