"""How a model reads a prompt or a problem: its tokens, and which characters each of them holds.

A text model is asked in NUPA's wording, or in a template such as "{a} + {b} = "; a model from scratch in its own words,
which are shown with spaces between them. Everything after `Reading.start` is the answer.
"""

import string
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.errors import ModelError, TaskError
from lab.numbers.sampling import Problem, task_of
from lab.numbers.tasks import Task
from lab.text.notation import BEGIN, END, EQUALS, Notation, ScratchNotation
from lab.text.prompts import around_operands

Span = tuple[int, int]
"""The first character, and the one after the last."""


class Reading(NamedTuple):
    """A prompt, and perhaps its answer, as a model reads them."""

    text: str
    ids: list[int]
    spans: list[Span]
    """The characters of each token; empty for a token without text."""
    start: int
    """The index of the first token of the answer."""
    parts: Mapping[str, Span]
    """Parts of the prompt by name, such as "a" and "b"."""

    def tokens_of(self, span: Span) -> list[int]:
        """The tokens that hold some of these characters."""
        return [at for at, (start, end) in enumerate(self.spans) if start < span[1] and end > span[0]]


@runtime_checkable
class Reader(Protocol):
    """What a subject's writer can do if it reads more than additions."""

    def reading(self, prompt: str, answer: str = "") -> Reading:
        """A text of one's own, and its answer."""
        ...

    def problem(self, problem: Problem) -> Reading:
        """A problem of a number task and its right answer. Raises TaskError for a task that the model does not
        have."""
        ...

    def words(self, ids: Sequence[int]) -> list[str]:
        """Each token as text, for display."""
        ...


class TextReader:
    """Prompts of a text model."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, template: str = "", form: FormatConfig | None = None
    ) -> None:
        """Raises ModelError for a slow tokenizer, and TaskError for a template with other fields.

        Args:
            tokenizer: a fast tokenizer.
            template: a text with {a}, and with {b} after it if problems have it; NUPA's prompt if empty. The answer
                follows it directly.
            form: how numbers are written.
        """
        if not tokenizer.is_fast:
            raise ModelError("this tokenizer is a slow one, which does not say which characters its tokens hold")
        self._tokenizer, self._form = tokenizer, form or FormatConfig()
        self._template, self._around = template, around_fields(template) if template else None

    @property
    def takes_two(self) -> bool:
        """Whether its prompts have two numbers."""
        return self._around is None or "{b}" in self._template

    def reading(self, prompt: str, answer: str = "", parts: Mapping[str, Span] | None = None) -> Reading:
        """See `Reader`. Prompt and answer are tokenized separately, as in training and in generation."""
        asked = self._tokenizer(prompt, return_offsets_mapping=True)
        ids, spans = list(asked["input_ids"]), list(asked["offset_mapping"])  # type: ignore[arg-type]
        start = len(ids)
        if answer:
            answered = self._tokenizer(answer, return_offsets_mapping=True, add_special_tokens=False)
            ids += answered["input_ids"]  # type: ignore[arg-type]
            spans += [(a + len(prompt), b + len(prompt)) for a, b in answered["offset_mapping"]]  # type: ignore[union-attr]
        return Reading(prompt + answer, ids, spans, start, parts or {})

    def problem(self, problem: Problem) -> Reading:
        """See `Reader`."""
        task = task_of(problem)
        notation = Notation(TokenizerConfig(), self._form, [task])
        words = notation.question(problem)
        operator = words.index(f"<{task.key}>")
        a, b = "".join(words[:operator]), "".join(words[operator + 1 : -1])
        before, between, after = self._around or around_operands(problem)
        if b and not self.takes_two:
            raise TaskError(f"template {self._template!r}: {_TWO}")
        second = len(before) + len(a) + len(between)
        parts = {"a": (len(before), len(before) + len(a)), "operator": (len(before) + len(a), second)}
        parts |= {"b": (second, second + len(b))} if b else {}
        answer = "".join(notation.answer(problem))
        prompt = f"{before}{a}{between}{b}{after}"
        return self.reading(prompt, answer if self._around else f" {answer}", parts)

    def words(self, ids: Sequence[int]) -> list[str]:
        """See `Reader`."""
        return [self._tokenizer.decode([token]) for token in ids]  # type: ignore[misc]


class NotationReader:
    """Problems of a model from scratch, in its words."""

    def __init__(self, notation: ScratchNotation, tokenizer: PreTrainedTokenizerBase) -> None:
        self._notation, self._tokenizer = notation, tokenizer
        self.pad = int(tokenizer.pad_token_id)  # type: ignore[arg-type]
        self.end: int = tokenizer.convert_tokens_to_ids(END)  # type: ignore[assignment]

    @property
    def tasks(self) -> list[Task]:
        """The tasks that the model was trained on."""
        return self._notation.tasks

    def reading(self, prompt: str, answer: str = "") -> Reading:
        """See `Reader`: words with spaces between them, such as "1 2 <add_integer> 9 =". <begin> is put first. Raises
        TaskError for a word that the model does not have."""
        asked = prompt.split()
        words = [*([] if asked[:1] == [BEGIN] else [BEGIN]), *asked]
        return self._of(words, answer.split(), {})

    def problem(self, problem: Problem) -> Reading:
        """See `Reader`."""
        asked, answer = self._notation.question(problem), self._notation.answer(problem)
        operators = [at for at, word in enumerate(asked) if word.startswith("<") and word[1:2].isalpha()]
        parts = {}
        if operators and asked[operators[0]] != BEGIN:
            at = operators[0]
            ranges = {"a": (0, at), "operator": (at, at + 1), "b": (at + 1, len(asked) - (asked[-1] == EQUALS))}
            parts = {name: (start + 1, end + 1) for name, (start, end) in ranges.items() if end > start}
        return self._of([BEGIN, *asked], [*answer, END], parts)

    def words(self, ids: Sequence[int]) -> list[str]:
        """See `Reader`."""
        return self._tokenizer.convert_ids_to_tokens(list(ids))  # type: ignore[return-value]

    def _of(self, asked: list[str], answer: list[str], parts: Mapping[str, Span]) -> Reading:
        words, spans, at = [*asked, *answer], [], 0
        if unknown := [word for word in words if word not in self._notation.vocabulary]:
            raise TaskError(
                f"{unknown[0]!r} is no word of this model, which was trained from scratch on words of its own"
            )
        for word in words:
            spans.append((at, at + len(word)))
            at += len(word) + 1
        characters = {name: (spans[start][0], spans[end - 1][1]) for name, (start, end) in parts.items()}
        ids = self._tokenizer.convert_tokens_to_ids(words)
        return Reading(" ".join(words), list(ids), spans, len(asked), characters)  # type: ignore[arg-type]


def reader_of(subject: object) -> Reader:
    """The reader of a subject. Raises ModelError for a subject that only knows additions."""
    writer = getattr(subject, "writer", None)
    if not isinstance(writer, Reader):
        name = getattr(subject, "name", subject)
        raise ModelError(f"{name}: it has no tokenizer for other prompts than sums; give tokens: lab.probing.contrast")
    return writer


_TWO = "should have {a}, something between, and {b}, once each"


def around_fields(template: str) -> tuple[str, str, str]:
    """The texts before, between and after the fields. Raises TaskError unless the fields are {a} and {b}, with a text
    between them, or {a} alone."""
    texts, fields = [""], []
    try:
        for text, field, form, conversion in string.Formatter().parse(template):
            texts[-1] += text  # the parser also ends a part, without a field, at an escaped brace
            if field is not None:
                fields.append(field + (form or "") + (conversion or ""))
                texts.append("")
    except ValueError:  # raised for a single brace
        fields = []
    if fields == ["a"]:
        return texts[0], texts[1], ""
    if fields != ["a", "b"] or not texts[1].strip():
        raise TaskError(f"template {template!r}: {_TWO}")
    return texts[0], texts[1], texts[2]
