"""What patching measures: how far a change of the base's run turns its answer into that of the source.

    m       the margin: logit of the source's digit - logit of the base's digit, at q_k
    effect  (m of the changed base - m of the base) / (m of the source - m of the base)

This is the normalized logit difference of activation patching (Wang et al. 2022, arXiv 2211.00593; Heimersheim and
Nanda 2024, arXiv 2404.15255): an effect is 0 if nothing changes, and 1 if the model answers the base like the source.
The base is the corrupted prompt and the source the clean one, so patching is denoising. Each pair is also run with base
and source exchanged (noising), because what turns a carry on need not turn it off. Effects are reported for both
directions of the carry into column k.

An effect is a ratio of two means over the pairs of a direction, because the margins of a single pair may hardly differ;
the bootstrap draws pairs for both means together. Only pairs count in which the model gets digit k of both sums right.
If fewer than half of the pairs are right, the model is refused before anything is patched (`Contrast.of_right_pairs`).

Shapes: B pairs (each in both directions), C copies of the base's run, T tokens, D width of the model, V words, W = 2
directions of the carry.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from lab.errors import ModelError, TaskError
from lab.probing.bridge import Hook, Subject, keeping
from lab.probing.interventions import only_logits_at
from lab.probing.measured import Axes, Measured
from lab.probing.pairs import Pairs
from lab.probing.positions import NOWHERE, Sums, batches

CARRY_DIRECTIONS = ("0 to 1", "1 to 0")
"""The direction of the carry into column k, from the base to the source."""
_LAYOUT = ("a_at_BK", "b_at_BK", "answer_at_BK", "operator_at_B", "equals_at_B")
_COMPETENT = 0.5
"""The smallest share of the pairs that a subject must get right."""
EVERYWHERE = "everywhere"
PLACES = ("a_k", "a_k-1", "b_k", "b_k-1", "operator", "equals", "q_k-1", "q_k")
"""Names of tokens by their role for column k. The first digit of an answer is predicted at "equals"."""


class Effects(NamedTuple):
    """Effects, and the difference of margins by which they are normalized."""

    effect: Measured
    gap: Measured
    """An effect of 1 in logits: m of the source - m of the base, for each direction of the carry."""


class Contrast:
    """Pairs in both directions, as one subject reads them. Rows end at the last q_k if this does not change logits."""

    def __init__(self, subject: Subject, pairs: Pairs) -> None:
        """Raises TaskError unless base and source have their digits at the same tokens and differ in the carry into
        the pairs' column, and ModelError for a tokenizer that puts several digits in a token."""
        self.subject, self.column = subject, pairs.column
        self.base, self.source = subject.sums([*pairs.base, *pairs.source]), subject.sums([*pairs.source, *pairs.base])
        k, base, source = pairs.column, self.base, self.source
        if k >= base.query_at_BK.shape[1] or (base.query_at_BK[:, k] == NOWHERE).any():
            raise TaskError(f"column {k}: some of the pairs have no such digit in their answers")
        if not all(getattr(base, name).equal(getattr(source, name)) for name in _LAYOUT):
            raise TaskError("base and source have their digits at different tokens; all lengths should be the same")
        carries_B = base.columns.carry[:, k]
        if (same := np.flatnonzero(carries_B == source.columns.carry[:, k])).size:
            row = same[0]
            raise TaskError(f"{base.numbers[row]} and {source.numbers[row]} have the same carry into column {k}")
        ids = torch.tensor(subject.writer.digit_ids())
        self.base_id_B, self.source_id_B = (ids[torch.from_numpy(sums.columns.sum[:, k])] for sums in (base, source))
        self.direction_B: np.ndarray = carries_B
        """Index into `CARRY_DIRECTIONS`."""
        self.corrupt_B, self.clean_B = np.full((2, len(carries_B)), np.nan)
        """The margins of bases and sources; nan until `Runs` has run them."""
        self.right_B = np.zeros(len(carries_B), dtype=bool)
        """Whether the subject gets digit k of both sums right; false until `Runs` has run them."""
        self._cut_after_query()

    def __len__(self) -> int:
        return len(self.base)

    def at_BT(self, place: str) -> torch.Tensor:
        """Which tokens have the role `place`, (B, T). Tokens after q_k are left out, because they have no influence. A
        row may have no such token.

        Raises TaskError for a place that is neither EVERYWHERE nor in PLACES.
        """
        sums, k = self.base, self.column
        tokens_T, query_B1 = torch.arange(sums.tokens_BT.shape[1]), sums.query_at_BK[:, k, None]
        if place == EVERYWHERE:
            return tokens_T <= query_B1
        if place not in PLACES:
            raise TaskError(f"there is no place {place!r}; it should be {EVERYWHERE}, or one of {', '.join(PLACES)}")
        name, _, offset = place.partition("_k")
        column = k + int(offset or 0)
        named = {"a": sums.a_at_BK, "b": sums.b_at_BK, "q": sums.query_at_BK}
        if name in named:
            at_B = named[name][:, column] if column >= 0 else torch.full((len(sums),), NOWHERE)
        else:
            at_B = sums.operator_at_B if name == "operator" else sums.equals_at_B
        return (tokens_T == at_B[:, None]) & (tokens_T <= query_B1)

    def donors(self, numbers: Sequence[tuple[int, int]]) -> Sums:
        """Other sums, one for each base, whose activations can be patched into the bases' runs.

        Raises TaskError unless each has its digits at the same tokens as its base.
        """
        base, found = self.base, self.subject.sums(numbers)
        if not all(getattr(base, name).equal(getattr(found, name)) for name in _LAYOUT):
            raise TaskError("donors and bases have their digits at different tokens; all lengths should be the same")
        return replace(found, tokens_BT=found.tokens_BT[:, : base.tokens_BT.shape[1]])

    def effects(self, name: str, axes: Axes, changed: np.ndarray) -> Effects:
        """The effects of changes of runs. The pairs must have been run (`Runs`).

        Args:
            name: what is measured.
            axes: what the changes differ in. The result has an axis "carry" before these.
            changed: the margins (B, *axes) after each change; nan if a change does not apply to a pair.
        """
        return self.effects_of_moves(name, axes, changed - self.corrupt_B[:, *[None] * len(axes)])

    def effects_of_moves(self, name: str, axes: Axes, moved: np.ndarray) -> Effects:
        """Like `effects`, but `moved` is what each change adds to the margins, (B, *axes). Effects are nan in a
        direction in which base and source do not clearly differ."""
        directions = {"carry": CARRY_DIRECTIONS}
        gap_BW = self._by_direction(self.clean_B - self.corrupt_B)
        gap = Measured.mean("margin of the source - margin of the base", directions, gap_BW)
        scale_BW = np.where(gap.low > 0, gap_BW, np.nan)
        return Effects(Measured.ratio(name, {**directions, **axes}, self._by_direction(moved), scale_BW), gap)

    @classmethod
    def of_right_pairs(cls, subject: Subject, pairs: Pairs, batch_size: int) -> "Contrast":
        """The pairs whose digit k the subject gets right in both sums. Finding them takes one run of each sum.

        Raises the errors of `Contrast`, and ModelError if fewer than half of the pairs are right: patching would not
        show how the subject adds.
        """
        contrast = cls(subject, pairs).run(batch_size)
        right_N = contrast.right_B[: len(pairs.base)]
        if right_N.mean() < _COMPETENT:
            raise ModelError(
                f"{subject.name}: it writes digit {pairs.column} of both sums in {100 * right_N.mean():.0f} % of "
                f"pairs, and at least {100 * _COMPETENT:.0f} % are needed; use numbers that it can add"
            )
        return contrast if right_N.all() else cls(subject, pairs.where(right_N)).run(batch_size)

    @torch.inference_mode()
    def run(self, batch_size: int) -> "Contrast":
        """Runs base and source of all pairs, to get their margins."""
        for rows in batches(len(self), batch_size):
            Runs(self, rows, [], [])
        return self

    @torch.inference_mode()
    def _cut_after_query(self) -> None:
        """Leaves out the tokens after the last q_k, because a causal model does not attend to them. They stay if
        logits would change without them, because an id depends on the length of a row."""
        at, row = self.base.query_at_BK[:, self.column], slice(0, 1)
        base, source = (
            replace(sums, tokens_BT=sums.tokens_BT[:, : int(at.max()) + 1]) for sums in (self.base, self.source)
        )
        cut_V, whole_V = (self.subject.logits(sums.part(row))[0, at[0]] for sums in (base, self.base))
        if torch.allclose(cut_V, whole_V, rtol=0, atol=1e-3 * float(whole_V.abs().max())):
            self.base, self.source = base, source

    def _by_direction(self, values: np.ndarray) -> np.ndarray:
        """(B, W, ...) from (B, ...), with nan in the direction that a pair does not have."""
        has_BW = self.direction_B[:, None] == np.arange(len(CARRY_DIRECTIONS))
        return np.where(has_BW.reshape(*has_BW.shape, *[1] * (values.ndim - 1)), values[:, None], np.nan)


class Slopes(NamedTuple):
    """The activations of the base's run, and the gradients of its margins with respect to them, by hook point."""

    activations: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor]


class Runs:
    """Runs the base and the source of some of the pairs once, and then the base again with changes."""

    def __init__(self, contrast: Contrast, rows: slice, base: Sequence[str], source: Sequence[str]) -> None:
        """Runs some of the pairs, and stores their margins in the contrast.

        Args:
            contrast: the pairs.
            rows: which of them.
            base: hook points whose activations are kept from the base's run.
            source: hook points whose activations are kept from the source's run.

        Raises ModelError for a hook point that does not exist, and if the last layer depends on more than the residual
        stream before it.
        """
        self._subject, self._sums = contrast.subject, contrast.base.part(rows)
        self._at_B1 = self._sums.query_at_BK[:, contrast.column, None]
        self._ids = contrast.base_id_B[rows], contrast.source_id_B[rows]
        self._blocks: list[Any] = list(contrast.subject.bridge.blocks)
        streams = [f"blocks.{layer}.hook_resid_pre" for layer in range(len(self._blocks))]
        outputs: list[type] = []
        handle = self._blocks[0].register_forward_hook(lambda block, given, output: outputs.append(type(output)))
        try:
            logits_B1V, self.base = self._subject.activations(self._sums, [*streams, *base], [self._only_query()])
        finally:
            handle.remove()
        self._returns_tuple = outputs[0] is tuple
        self._streams = [self.base[name] for name in streams]
        self.corrupt_B, right_B = self._margin(logits_B1V), self._says(logits_B1V, 0)
        logits_B1V, self.source = self._subject.activations(contrast.source.part(rows), source, [self._only_query()])
        self.clean_B = self._margin(logits_B1V)
        contrast.corrupt_B[rows], contrast.clean_B[rows] = (part.cpu() for part in (self.corrupt_B, self.clean_B))
        contrast.right_B[rows] = (right_B & self._says(logits_B1V, 1)).cpu()
        again_B = self.rerun(range(len(self._blocks) - 1, len(self._blocks)), [])[0]
        if not torch.allclose(again_B, self.corrupt_B, atol=1e-3 * float(self.corrupt_B.abs().max())):
            raise ModelError(f"{self._subject.name}: its last layer depends on more than the stream before it")

    def __len__(self) -> int:
        return len(self._sums)

    def rerun(self, layers: range, hooks: Sequence[Hook], copies: int = 1) -> torch.Tensor:
        """Runs the base again with hooks. Returns the margins (C, B) of `copies` of it, which form one batch (C B, T).

        Only `layers` are computed: the run starts from the stored stream before them, and skips later layers.
        """
        stream_BTD = self._streams[layers.start]

        def enter(activation: torch.Tensor, hook: Any) -> torch.Tensor:
            return stream_BTD.repeat(copies, 1, 1)

        tokens = self._sums.tokens_BT.to(self._subject.device).repeat(copies, 1)
        entering: Hook = (f"blocks.{layers.start}.hook_resid_pre", enter)
        with self._only_layers(layers):
            logits = self._subject.bridge.run_with_hooks(tokens, fwd_hooks=[entering, *hooks, self._only_query(copies)])
        return self._margin(logits, copies).reshape(copies, -1)

    def within(self, layer: int, names: Sequence[str], hooks: Sequence[Hook]) -> dict[str, torch.Tensor]:
        """Activations of one layer by hook point, in the base's run with hooks. No other layer is computed."""
        kept: dict[str, torch.Tensor] = {}
        self.rerun(range(layer, layer + 1), [*hooks, *keeping(names, kept)])
        return kept

    def slopes(self, names: Sequence[str], start_BTD: torch.Tensor | None = None, hooks: Sequence[Hook] = ()) -> Slopes:
        """The gradient of each row's margin with respect to the row's activations, in the base's run; zeros for an
        activation on which the margin does not depend.

        Args:
            names: the hook points of the activations.
            start_BTD: the stream before the first layer; the base's if not given.
            hooks: further changes of the run.
        """
        first_BTD = self._streams[0] if start_BTD is None else start_BTD
        kept: dict[str, torch.Tensor] = {}

        def begin(activation: torch.Tensor, hook: Any) -> torch.Tensor:
            return first_BTD.detach().clone().requires_grad_()  # even if the weights do not require gradients

        with torch.inference_mode(False), torch.enable_grad():
            beginning = [("blocks.0.hook_resid_pre", begin), *keeping(names, kept, apart=True)]
            margin_1B = self.rerun(range(len(self._blocks)), [*beginning, *hooks])
            found = torch.autograd.grad(margin_1B.sum(), [kept[name] for name in names], allow_unused=True)
        slopes = [torch.zeros_like(kept[name]) if one is None else one for name, one in zip(names, found, strict=True)]
        return Slopes(kept, {name: one.float() for name, one in zip(names, slopes, strict=True)})

    @contextmanager
    def _only_layers(self, layers: range) -> Iterator[None]:
        """Makes blocks outside `layers` return their input."""

        def skip(*given: Any, **named: Any) -> Any:
            stream = given[0] if given else named["hidden_states"]
            return (stream,) if self._returns_tuple else stream

        outside = [block for index, block in enumerate(self._blocks) if index not in layers]
        for block in outside:
            vars(block)["forward"] = skip  # a plain assignment would go to the module that the bridge wraps
        try:
            yield
        finally:
            for block in outside:
                del vars(block)["forward"]

    def _only_query(self, copies: int = 1) -> Hook:
        return only_logits_at(self._at_B1.repeat(copies, 1))

    def _says(self, logits_B1V: torch.Tensor, side: int) -> torch.Tensor:
        """Whether the most likely token is digit k of the base (`side` 0) or of the source (`side` 1), (B,)."""
        return logits_B1V[:, 0].argmax(-1) == self._ids[side].to(logits_B1V.device)

    def _margin(self, logits: torch.Tensor, copies: int = 1) -> torch.Tensor:
        base, source = (ids.to(logits.device).repeat(copies)[:, None] for ids in self._ids)
        found = logits[:, 0].float()
        return (found.gather(1, source) - found.gather(1, base))[:, 0]
