"""A contrast: pairs of prompts, what is read of their answers, and what their tokens are called.

Instruments compare how a model answers two prompts that differ in one thing, the base and the source. A contrast says
all that they need to know, and nothing about a task:

    base, source    the tokens of both prompts. Those of a row have the same length, and are aligned: token t of the
                    base stands for what token t of the source stands for
    queries         the tokens at which the next token is read; usually the last one of the prompt
    answers         the token that answers the base, and the one that answers the source, at each query
    metric          a number for each row from the logits at its queries; the difference of the logits of the two
                    answers (Wang et al. 2022, arXiv 2211.00593) if none is given. It must be differentiable for
                    instruments that use gradients
    roles           names of tokens, such as "operator" or "digit 2 of a"; instruments patch and report by role
    directions      a name for each group of rows that is reported apart, such as the carry's "0 to 1" and "1 to 0"

    from lab.probing.prompt_pairs import PromptPairs

    pairs = PromptPairs.of(["The larger of 3.5 and 2.7 is"], ["The larger of 3.5 and 4.7 is"], [(" 3", " 4")])

Instruments take a contrast, or pairs that can write one for a model: `PromptPairs` (texts, a file), `TaskPairs` (any
number task) or the additions of lab/probing/addition. Each pair makes two rows, base to source and source to base,
because what turns an answer need not turn it back.

Shapes: B rows, T tokens, Q queries, V words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np
import torch

from lab.errors import TaskError

NOWHERE = -1
"""The index of a token that does not exist."""
EVERYWHERE = "everywhere"
"""The role of all tokens up to a row's last query."""
LAST = "last token"
"""The role of the token of a row's last query."""
BOTH_WAYS = ("base to source", "source to base")
Rows: TypeAlias = slice | Sequence[int]
Right: TypeAlias = Literal["first", "likelier"]


class Asked(Protocol):
    """Prompts as tokens: `Tokens`, or the additions of `lab.probing.addition.positions.Sums`."""

    tokens_BT: Any

    def __len__(self) -> int: ...

    def part(self, rows: Rows) -> Self: ...


@dataclass(frozen=True, eq=False)
class Tokens:
    """Prompts as tokens, padded on the right, where no earlier token sees the padding."""

    tokens_BT: torch.Tensor

    def __len__(self) -> int:
        return len(self.tokens_BT)

    def part(self, rows: Rows) -> "Tokens":
        return Tokens(self.tokens_BT[rows])


class Contrasting(Protocol):
    """Whatever can say for a model what its contrast is."""

    def contrast(self, subject: Any) -> "Contrast": ...


Metric: TypeAlias = Callable[[torch.Tensor, "Contrast"], torch.Tensor]
"""From the logits at the queries of some rows, (B, Q, V), and the contrast of these rows, to a number for each."""


def logit_difference(logits_BQV: torch.Tensor, contrast: "Contrast") -> torch.Tensor:
    """The logit of the source's answer minus that of the base's, summed over the queries at which these differ."""
    base_BQ, source_BQ = (contrast.answers(side).to(logits_BQV.device) for side in ("base", "source"))
    counts_BQ = (base_BQ != NOWHERE) & (source_BQ != NOWHERE) & (base_BQ != source_BQ)
    of = (logits_BQV.float().gather(-1, ids_BQ.clamp(min=0)[..., None])[..., 0] for ids_BQ in (source_BQ, base_BQ))
    source, base = of
    return torch.where(counts_BQ, source - base, 0).sum(-1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contrast:
    """Pairs of prompts, and what is read of them; see the top of this page. A row is one pair in one direction."""

    base: Asked
    source: Asked
    """The prompt whose activations are patched into the base's run."""
    query_at_BQ: torch.Tensor
    """The tokens whose next token is read; NOWHERE in rows with fewer queries."""
    base_id_BQ: torch.Tensor | None = None
    """The token that answers the base at each query; None if only a metric is given."""
    source_id_BQ: torch.Tensor | None = None
    roles: Mapping[str, torch.Tensor]
    """For each role, whether a token of the row has it, (B, T)."""
    pair_B: torch.Tensor
    """The pair that each row belongs to."""
    direction_B: np.ndarray
    """Index into `directions`."""
    axis: str = "direction"
    """What the directions are those of; the name of the first axis of effects."""
    directions: Sequence[str] = BOTH_WAYS
    metric: Metric = logit_difference
    query_axis: str = "query"
    """What the queries are those of, such as columns of a sum."""
    alphabet: Sequence[int] = ()
    """The tokens that an answer may be; those that are answers if empty."""
    right: Right = "first"
    """When a row counts as answered: the answer is the most likely of all tokens, or likelier than the other one."""
    outcomes: Mapping[str, torch.Tensor] | None = None
    """What a row may answer at its first query if a part of the source is put into it, (B,); the first is what is
    wanted. The source's answer, and the base's own ("unchanged"), if not given."""

    def __post_init__(self) -> None:
        """Raises TaskError unless the parts fit each other."""
        if not len(self.base):
            raise TaskError("a contrast needs at least one pair of prompts")
        if self.base.tokens_BT.shape != self.source.tokens_BT.shape:
            shapes = " and ".join(str(tuple(side.tokens_BT.shape)) for side in (self.base, self.source))
            raise TaskError(f"base and source have tokens of the shapes {shapes}; they should be the same")
        if self.metric is logit_difference and (self.base_id_BQ is None or self.source_id_BQ is None):
            raise TaskError("a contrast without a metric needs the answers to base and source")
        for name, has_BT in self.roles.items():
            if not bool(has_BT.any()):
                raise TaskError(f"no token has the role {name!r}: leave it out, or check the text that it should match")

    def __len__(self) -> int:
        return len(self.base)

    def contrast(self, subject: Any) -> "Contrast":
        """Itself: instruments take a contrast where they take pairs."""
        return self

    def answers(self, side: Literal["base", "source"]) -> torch.Tensor:
        """The answers to a side at each query, (B, Q). Raises TaskError if the contrast does not say them."""
        ids_BQ = self.base_id_BQ if side == "base" else self.source_id_BQ
        if ids_BQ is None:
            raise TaskError("this contrast has a metric and no answers; this needs the token that answers each prompt")
        return ids_BQ

    def part(self, rows: Rows) -> Self:
        """Some of the rows; a row may be repeated."""
        index = torch.arange(len(self))[rows]
        changed: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("base", "source"):
                changed[field.name] = value.part(rows)
            elif isinstance(value, torch.Tensor):
                changed[field.name] = value[index]
            elif isinstance(value, np.ndarray):
                changed[field.name] = value[index.numpy()]
            elif field.name in ("roles", "outcomes") and value is not None:
                changed[field.name] = {name: of_B[index] for name, of_B in value.items()}
        return self._with(**changed)

    def cut(self, tokens: int) -> Self:
        """The contrast without what comes after the first `tokens` tokens."""
        base, source = (
            replace(side, tokens_BT=side.tokens_BT[:, :tokens])  # type: ignore[type-var]
            for side in (self.base, self.source)
        )
        roles = {name: has_BT[:, :tokens] for name, has_BT in self.roles.items()}
        return self._with(base=base, source=source, roles=roles)

    def _with(self, **changed: Any) -> Self:
        """A copy with other fields, which is not checked: a role may be of no token in some rows."""
        part = object.__new__(type(self))
        for field in fields(self):
            object.__setattr__(part, field.name, changed.get(field.name, getattr(self, field.name)))
        return part

    @property
    def places(self) -> tuple[str, ...]:
        """The names of its roles."""
        return tuple(self.roles)

    def at_BT(self, place: str) -> torch.Tensor:
        """Which tokens have a role, (B, T). Tokens after a row's last query are left out, because they have no
        influence. A row may have no such token.

        Raises TaskError for a role that the contrast does not have.
        """
        tokens_T = torch.arange(self.base.tokens_BT.shape[1])
        before_BT = tokens_T <= self.query_at_BQ.max(1).values[:, None]
        if place == EVERYWHERE:
            return before_BT
        if place == LAST:
            return tokens_T == self.query_at_BQ.max(1).values[:, None]
        if place not in self.roles:
            known = ", ".join(dict.fromkeys([EVERYWHERE, *self.roles]))
            raise TaskError(f"there is no place {place!r}: no token has this role; the roles are {known}")
        return self.roles[place] & before_BT

    def expected(self) -> Mapping[str, torch.Tensor]:
        """`outcomes`, or what they are if not given."""
        return self.outcomes or {"target": self.answers("source")[:, 0], "unchanged": self.answers("base")[:, 0]}


def both_ways(count: int) -> tuple[torch.Tensor, np.ndarray]:
    """`pair_B` and `direction_B` of a contrast whose second half has the pairs of the first half exchanged."""
    return torch.arange(count).repeat(2), np.repeat([0, 1], count)
