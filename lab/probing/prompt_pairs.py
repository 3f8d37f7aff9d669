"""Pairs of prompts as text: from two lists, or from a file.

    from lab.probing.prompt_pairs import PromptPairs

    pairs = PromptPairs.of(
        ["The larger of 3.52 and 7.18 is", "The larger of 8.10 and 2.93 is"],
        ["The larger of 3.52 and 1.18 is", "The larger of 1.10 and 2.93 is"],
        [(" 7.18", " 3.52"), (" 8.10", " 2.93")],
        roles=r"(?P<first>[\\d.]+) and (?P<second>[\\d.]+)",
        read="first",
    )

Each prompt is read together with its answer up to the first token at which the two answers differ. Tokens that they
share are given to both prompts, as if the model had written them.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from lab.errors import TaskError
from lab.probing.contrast import LAST, NOWHERE, Contrast, Metric, Right, Tokens, both_ways, logit_difference
from lab.probing.readings import Reader, Reading, reader_of

CHANGED, SO_FAR = "changed", "answer so far"
"""Roles beside LAST: the tokens that differ between base and source, and tokens of the answer before the query."""
_FIELDS = ("base", "source", "base_answer", "source_answer")


class PromptPairs(NamedTuple):
    """Pairs of prompts for any text model, and for models from scratch in their own words."""

    base: Sequence[str]
    source: Sequence[str]
    answers: Sequence[tuple[str, str]] = ()
    """What answers base and source, with the space before it if there is one; empty if there is a metric."""
    roles: str = ""
    """A regular expression with named groups; the tokens of a group have its name as their role."""
    read: Literal["whole", "first"] = "whole"
    """Whether the answers must be one token each, apart from the tokens that they share at the beginning, or the first
    token at which they differ is read."""
    metric: Metric = logit_difference
    right: Right = "likelier"
    """See `Contrast`. As a prompt of one's own may be answered in many ways, an answer counts as right if it is
    likelier than the other one."""

    @classmethod
    def of(
        cls, base: Iterable[str], source: Iterable[str], answers: Iterable[tuple[str, str]] = (), **others: Any
    ) -> "PromptPairs":
        """Pairs from two lists. Raises TaskError unless the lists have the same length, for an expression that cannot
        be read, and for a metric that is no function. For `others` see the fields of this class."""
        pairs = cls(list(base), list(source), [tuple(one) for one in answers], **others)  # type: ignore[misc]
        counts = len(pairs.base), len(pairs.source), len(pairs.answers) or len(pairs.base)
        if len(set(counts)) > 1:
            raise TaskError(f"{counts[0]} bases, {counts[1]} sources and {counts[2]} answers; there should be as many")
        if bad := next(
            (one for one in pairs.answers if len(one) != 2 or not all(isinstance(a, str) for a in one)), None
        ):
            raise TaskError(f"answers {bad!r}: should be two texts, the answers to base and source")
        if not callable(pairs.metric):
            raise TaskError(f"the metric is {pairs.metric!r}; it should be a function of the logits and the contrast")
        try:
            re.compile(pairs.roles)
        except re.error as error:
            raise TaskError(f"roles {pairs.roles!r}: no regular expression: {error}") from None
        return pairs

    @classmethod
    def file(cls, path: str | Path, **others: Any) -> "PromptPairs":
        """Pairs from a file: .jsonl with an object in each line, or .csv with a heading. Fields: base, source,
        base_answer, source_answer. Raises TaskError for a file that is missing or has other fields."""
        rows = _rows(Path(path))
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in _FIELDS):
                raise TaskError(f"{path}, row {number}: should have the texts {', '.join(_FIELDS)}")
        base, source, *answers = ([row[name] for row in rows] for name in _FIELDS)
        return cls.of(base, source, zip(*answers, strict=True), **others)

    def contrast(self, subject: Any) -> Contrast:
        """The pairs as a model reads them.

        Raises TaskError for prompts of different lengths, for answers that do not differ or that the tokenizer splits,
        and for a role that no token has, and ModelError for a subject that reads only additions.
        """
        reader = reader_of(subject)
        answers = self.answers or [("", "")] * len(self.base)
        readings = [
            tuple(reader.reading(prompt, answer) for prompt, answer in zip(pair, both, strict=True))
            for pair, both in zip(zip(self.base, self.source, strict=True), answers, strict=True)
        ]
        named = {name: [self._spans(name, pair) for pair in readings] for name in re.compile(self.roles).groupindex}
        return contrast_of(
            readings, named, reader, metric=self.metric, right=self.right, whole=self.read == "whole",
            pad=getattr(reader, "pad", 0),
        )  # fmt: skip

    def _spans(self, name: str, pair: Sequence[Reading]) -> list[list[int]]:
        """The tokens of the group in base and source."""
        found = [re.search(self.roles, one.text) for one in pair]
        return [
            one.tokens_of(match.span(name)) if match and match[name] is not None else []
            for one, match in zip(pair, found, strict=True)
        ]


def contrast_of(
    readings: Sequence[Sequence[Reading]],
    named: Mapping[str, Sequence[Sequence[Sequence[int]]]],
    reader: Reader,
    *,
    whole: bool,
    pad: int,
    metric: Metric = logit_difference,
    right: Right = "first",
) -> Contrast:
    """The contrast of pairs of readings, in both directions.

    Args:
        readings: base and source of each pair.
        named: for each role, the tokens of base and source of each pair. A role that is at different tokens in the two
            is left out for this pair.
        reader: for display.
        whole: whether each answer must be a single token, apart from those that both share at the beginning.
        pad: the token of padding.
    """
    ids, queries, answers = [], [], []
    for number, (base, source) in enumerate(readings):
        at = _where_read(number, base, source, reader, whole)
        ids.append((base.ids[:at], source.ids[:at]))
        queries.append(at - 1)
        answers.append(tuple(one.ids[at] if at < len(one.ids) else NOWHERE for one in (base, source)))
    width, count = max(queries) + 1, len(readings)
    base_BT, source_BT = (
        torch.tensor([[*pair[side], *[pad] * (width - len(pair[side]))] for pair in ids]) for side in (0, 1)
    )
    tokens_T, query_B1 = torch.arange(width), torch.tensor(queries)[:, None]
    first_B1 = torch.tensor([base.start for base, _ in readings])[:, None]
    known = {name: _mask([own if own == other else [] for own, other in at], width) for name, at in named.items()}
    known |= {CHANGED: base_BT != source_BT, LAST: tokens_T == query_B1}
    if (so_far := (tokens_T >= first_B1) & (tokens_T <= query_B1)).any():
        known[SO_FAR] = so_far
    pair_B, direction_B = both_ways(count)
    base_id_B1, source_id_B1 = (torch.tensor(side)[:, None] for side in zip(*answers, strict=True))
    has_answers = bool((base_id_B1 != NOWHERE).all())
    return Contrast(
        base=Tokens(torch.cat([base_BT, source_BT])), source=Tokens(torch.cat([source_BT, base_BT])),
        query_at_BQ=query_B1.repeat(2, 1),
        base_id_BQ=torch.cat([base_id_B1, source_id_B1]) if has_answers else None,
        source_id_BQ=torch.cat([source_id_B1, base_id_B1]) if has_answers else None,
        roles={name: has_BT.repeat(2, 1) for name, has_BT in known.items()}, pair_B=pair_B,
        direction_B=np.asarray(direction_B), metric=metric, right=right,
    )  # fmt: skip


def _where_read(number: int, base: Reading, source: Reading, reader: Reader, whole: bool) -> int:
    """The first token at which the answers differ. Raises TaskError for a pair that cannot be compared."""
    name = f"pair {number}"
    if base.start != source.start:
        raise TaskError(
            f"{name}: its prompts have {base.start} and {source.start} tokens, and should have as many: "
            f"{base.text!r} and {source.text!r}"
        )
    if base.ids[: base.start] == source.ids[: source.start]:
        raise TaskError(f"{name}: base and source are the same prompt, {base.text!r}")
    own, other = base.ids[base.start :], source.ids[source.start :]
    if not own and not other:
        return base.start
    same = next((at for at, both in enumerate(zip(own, other, strict=False)) if both[0] != both[1]), None)
    if same is None:
        raise TaskError(
            f"{name}: the answers {_shown(own, reader)} and {_shown(other, reader)} have no token to tell apart"
        )
    for answer in (own, other) if whole else ():
        if len(answer) > same + 1:
            raise TaskError(
                f"{name}: the tokenizer splits the answer into {_shown(answer, reader)}; give an answer of one token, "
                "or read='first' for the first token at which the answers differ"
            )
    return base.start + same


def _shown(ids: Sequence[int], reader: Reader) -> str:
    return ", ".join(map(repr, reader.words(ids))) or "nothing"


def _mask(at: Sequence[Sequence[int]], width: int) -> torch.Tensor:
    """Whether each token is among those of its row, (B, T)."""
    mask_BT = torch.zeros(len(at), width, dtype=torch.bool)
    for row, tokens in enumerate(at):
        mask_BT[row, [token for token in tokens if token < width]] = True
    return mask_BT


def _rows(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from None
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    if path.suffix not in (".jsonl", ".json"):
        raise TaskError(f"{path}: should be a file of pairs that ends in .jsonl or .csv")
    rows = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), 1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise TaskError(f"{path}, row {number}: no JSON: {error}") from None
    return rows
