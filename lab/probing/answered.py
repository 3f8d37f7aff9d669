"""How one model answers a contrast, and how its answers move if a part of its run is changed.

    m       the metric of a row; by default the logit of the source's answer - that of the base's
    effect  (m of the changed base - m of the base) / (m of the source - m of the base)

This is the normalized logit difference of activation patching (Wang et al. 2022, arXiv 2211.00593; Heimersheim and
Nanda 2024, arXiv 2404.15255): an effect is 0 if nothing changes, and 1 if the model answers the base like the source.
The base is the corrupted prompt and the source the clean one, so patching is denoising; with base and source exchanged,
it is noising. Effects are reported for each direction of the contrast.

An effect is a ratio of two means over the rows of a direction, because the metric of a single pair may hardly differ;
the bootstrap draws pairs for both means together. Only pairs count that the model answers right, both base and source.
If fewer than half of the pairs are right, the model is refused before anything is patched (`Answered.of_right_pairs`).

Shapes: B rows, C copies of the base's run, T tokens, D width of the model, Q queries, V words, W directions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from lab.errors import ModelError, TaskError
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject, keeping
from lab.probing.contrast import Asked, Contrast, Contrasting
from lab.probing.interventions import only_logits_at
from lab.probing.measured import Axes, Measured

COMPETENT = 0.5
"""The smallest share of the pairs that a subject must answer right."""

Donor: TypeAlias = Callable[[Contrast], Asked]
"""From a contrast, the prompts whose activations are patched in instead of the sources', one for each row."""


class Effects(NamedTuple):
    """Effects, and the difference of metrics by which they are normalized."""

    effect: Measured
    gap: Measured
    """An effect of 1, in units of the metric: m of the source - m of the base, for each direction."""


class Answered:
    """A contrast as one subject answers it. Rows end at the last query if this does not change logits."""

    def __init__(self, subject: Subject, pairs: Contrasting) -> None:
        """Raises the errors of `pairs.contrast`."""
        self.subject = subject
        self.contrast: Any = _cut_after_query(subject, pairs.contrast(subject))
        self.corrupt_B, self.clean_B = np.full((2, len(self.contrast)), np.nan)
        """The metric of bases and sources; nan until `Runs` has run them."""
        self.right_B = np.zeros(len(self.contrast), dtype=bool)
        """Whether the subject answers both prompts right; false until `Runs` has run them."""

    def __len__(self) -> int:
        return len(self.contrast)

    @property
    def directions(self) -> dict[str, list[str]]:
        """The first axis of effects."""
        return {self.contrast.axis: list(self.contrast.directions)}

    @classmethod
    def of_right_pairs(cls, subject: Subject, pairs: Contrasting, batch_size: int) -> "Answered":
        """The pairs that the subject answers right, both base and source. Finding them takes one run of each prompt.

        Raises the errors of `Answered`, and ModelError if fewer than half of the pairs are right: patching would not
        show how the subject answers.
        """
        answered = cls(subject, pairs).run(batch_size)
        if (share := answered.right_B.mean()) < COMPETENT:
            raise ModelError(
                f"{subject.name}: it answers both prompts right in {100 * share:.0f} % of {len(answered) // 2} pairs, "
                f"and at least {100 * COMPETENT:.0f} % are needed; use prompts that it can answer"
            )
        right = np.flatnonzero(answered.right_B).tolist()
        return answered if len(right) == len(answered) else cls(subject, answered.contrast.part(right)).run(batch_size)

    @torch.inference_mode()
    def run(self, batch_size: int) -> "Answered":
        """Runs base and source of all pairs, to get their metrics."""
        for rows in batches(len(self), batch_size):
            Runs(self, rows, [], [])
        return self

    def effects(self, name: str, axes: Axes, changed: np.ndarray) -> Effects:
        """The effects of changes of runs. The pairs must have been run (`Runs`).

        Args:
            name: what is measured.
            axes: what the changes differ in. The result has the axis of the contrast's directions before these.
            changed: the metric (B, *axes) after each change; nan if a change does not apply to a pair.
        """
        return self.effects_of_moves(name, axes, changed - self.corrupt_B[:, *[None] * len(axes)])

    def effects_of_moves(self, name: str, axes: Axes, moved: np.ndarray) -> Effects:
        """Like `effects`, but `moved` is what each change adds to the metric, (B, *axes). Effects are nan in a
        direction in which base and source do not clearly differ."""
        gap_BW = self.by_direction(self.clean_B - self.corrupt_B)
        gap = Measured.mean("metric of the source - metric of the base", self.directions, gap_BW)
        scale_BW = np.where(clear(gap), gap_BW, np.nan)
        return Effects(Measured.ratio(name, {**self.directions, **axes}, self.by_direction(moved), scale_BW), gap)

    def by_direction(self, values: np.ndarray) -> np.ndarray:
        """(B, W, ...) from (B, ...), with nan in the directions that a row does not have."""
        has_BW = self.contrast.direction_B[:, None] == np.arange(len(self.contrast.directions))
        return np.where(has_BW.reshape(*has_BW.shape, *[1] * (values.ndim - 1)), values[:, None], np.nan)

    def by_pair(self, values: np.ndarray) -> np.ndarray:
        """The sums (N, ...) over the rows of each pair, of values (B, ...) that are first given the sign of the row's
        gap: a metric may rise in one direction and fall in the other."""
        sign_B = np.sign(self.clean_B - self.corrupt_B)
        pairs, of_B = np.unique(self.contrast.pair_B.numpy(), return_inverse=True)
        found = np.zeros((len(pairs), *values.shape[1:]))
        np.add.at(found, of_B, values * sign_B.reshape(-1, *[1] * (values.ndim - 1)))
        return found


def clear(gap: Measured) -> np.ndarray:
    """The directions in which base and source clearly differ."""
    return (gap.low > 0) | (gap.high < 0)


@torch.inference_mode()
def _cut_after_query(subject: Subject, contrast: Contrast) -> Contrast:
    """Leaves out the tokens after the last query, because a causal model does not attend to them. They stay if logits
    would change without them, because an id depends on the length of a row."""
    last = int(contrast.query_at_BQ.max())
    if last + 1 == contrast.base.tokens_BT.shape[1]:
        return contrast
    cut, first = contrast.cut(last + 1), slice(0, 1)
    at = int(contrast.query_at_BQ[0].max())
    cut_V, whole_V = (subject.logits(one.base.part(first))[0, at] for one in (cut, contrast))
    same = torch.allclose(cut_V, whole_V, rtol=0, atol=1e-3 * float(whole_V[whole_V.isfinite()].abs().max()))
    return cut if same else contrast


class Slopes(NamedTuple):
    """The activations of the base's run, and the gradients of its metric with respect to them, by hook point."""

    activations: dict[str, torch.Tensor]
    gradients: dict[str, torch.Tensor]


class Runs:
    """Runs the base and the source of some of the pairs once, and then the base again with changes."""

    def __init__(self, answered: Answered, rows: slice, base: Sequence[str], source: Sequence[str]) -> None:
        """Runs some of the pairs, and stores their metrics in the answered.

        Args:
            answered: the pairs.
            rows: which of them.
            base: hook points whose activations are kept from the base's run.
            source: hook points whose activations are kept from the source's run.

        Raises ModelError for a hook point that does not exist, and if the last layer depends on more than the residual
        stream before it; TaskError for a metric that is not a number for each row.
        """
        self._subject, self._part = answered.subject, answered.contrast.part(rows)
        self._blocks: list[Any] = list(self._subject.bridge.blocks)
        streams = [f"blocks.{layer}.hook_resid_pre" for layer in range(len(self._blocks))]
        outputs: list[type] = []
        handle = self._blocks[0].register_forward_hook(lambda block, given, output: outputs.append(type(output)))
        try:
            logits, self.base = self._subject.activations(self._part.base, [*streams, *base], [self._only_queries()])
        finally:
            handle.remove()
        self._returns_tuple = outputs[0] is tuple
        self._streams = [self.base[name] for name in streams]
        self.corrupt_B, right_B = self._measured(logits)[0], self._says(logits, "base")
        logits, self.source = self._subject.activations(self._part.source, source, [self._only_queries()])
        self.clean_B = self._measured(logits)[0]
        answered.corrupt_B[rows], answered.clean_B[rows] = (part.cpu() for part in (self.corrupt_B, self.clean_B))
        answered.right_B[rows] = (right_B & self._says(logits, "source")).cpu()
        again_B = self.rerun(range(len(self._blocks) - 1, len(self._blocks)), [])[0]
        if not torch.allclose(again_B, self.corrupt_B, atol=1e-3 * float(self.corrupt_B.abs().max())):
            raise ModelError(f"{self._subject.name}: its last layer depends on more than the stream before it")

    def __len__(self) -> int:
        return len(self._part)

    def rerun(self, layers: range, hooks: Sequence[Hook], copies: int = 1) -> torch.Tensor:
        """Runs the base again with hooks. Returns the metrics (C, B) of `copies` of it, which form one batch (C B, T).

        Only `layers` are computed: the run starts from the stored stream before them, and skips later layers.
        """
        return self._measured(self._logits(layers, hooks, copies), copies)

    def rerun_and_judge(
        self, layers: range, hooks: Sequence[Hook], copies: int = 1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Like `rerun`, with whether each row is still answered like its base, (C, B)."""
        logits = self._logits(layers, hooks, copies)
        says_CB = torch.stack([self._says(one, "base") for one in logits.unflatten(0, (copies, -1))])
        return self._measured(logits, copies), says_CB

    def _logits(self, layers: range, hooks: Sequence[Hook], copies: int) -> torch.Tensor:
        stream_BTD = self._streams[layers.start]

        def enter(activation: torch.Tensor, hook: Any) -> torch.Tensor:
            return stream_BTD.repeat(copies, 1, 1)

        tokens = self._part.base.tokens_BT.to(self._subject.device).repeat(copies, 1)
        entering: Hook = (f"blocks.{layers.start}.hook_resid_pre", enter)
        with self._only_layers(layers):
            hooks = [entering, *hooks, self._only_queries(copies)]
            return self._subject.bridge.run_with_hooks(tokens, fwd_hooks=hooks)

    def within(self, layer: int, names: Sequence[str], hooks: Sequence[Hook]) -> dict[str, torch.Tensor]:
        """Activations of one layer by hook point, in the base's run with hooks. No other layer is computed."""
        kept: dict[str, torch.Tensor] = {}
        self.rerun(range(layer, layer + 1), [*hooks, *keeping(names, kept)])
        return kept

    def slopes(self, names: Sequence[str], start_BTD: torch.Tensor | None = None, hooks: Sequence[Hook] = ()) -> Slopes:
        """The gradient of each row's metric with respect to the row's activations, in the base's run; zeros for an
        activation on which the metric does not depend.

        Args:
            names: the hook points of the activations.
            start_BTD: the stream before the first layer; the base's if not given.
            hooks: further changes of the run.

        Raises TaskError if the metric has no gradient.
        """
        first_BTD = self._streams[0] if start_BTD is None else start_BTD
        kept: dict[str, torch.Tensor] = {}

        def begin(activation: torch.Tensor, hook: Any) -> torch.Tensor:
            return first_BTD.detach().clone().requires_grad_()  # even if the weights do not require gradients

        with torch.inference_mode(False), torch.enable_grad():
            beginning = [("blocks.0.hook_resid_pre", begin), *keeping(names, kept, apart=True)]
            metric_1B = self.rerun(range(len(self._blocks)), [*beginning, *hooks])
            if not metric_1B.requires_grad:
                raise TaskError("the metric has no gradient with respect to the logits; this instrument needs one")
            found = torch.autograd.grad(metric_1B.sum(), [kept[name] for name in names], allow_unused=True)
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

    def _only_queries(self, copies: int = 1) -> Hook:
        return only_logits_at(self._part.query_at_BQ.repeat(copies, 1))

    def _says(self, logits_BQV: torch.Tensor, side: Any) -> torch.Tensor:
        """Whether each row's answer to a side is the most likely token at each query, or likelier than the other side's
        if that counts as right, (B,). Without answers, every row counts."""
        part = self._part
        if part.base_id_BQ is None or part.source_id_BQ is None:
            return torch.ones(len(part), dtype=torch.bool, device=logits_BQV.device)
        own_BQ, other_BQ = (
            part.answers(one).to(logits_BQV.device) for one in (side, "source" if side == "base" else "base")
        )
        if part.right == "first":
            said_BQ = logits_BQV.argmax(-1) == own_BQ
        else:
            own, other = (logits_BQV.gather(-1, ids.clamp(min=0)[..., None])[..., 0] for ids in (own_BQ, other_BQ))
            said_BQ = own > other
        return (said_BQ | (own_BQ < 0)).all(-1)

    def _measured(self, logits: torch.Tensor, copies: int = 1) -> torch.Tensor:
        """The metric (C, B) of copies of the rows."""
        found = [self._part.metric(one, self._part) for one in logits.unflatten(0, (copies, -1))]
        for one in found:
            if not isinstance(one, torch.Tensor) or one.shape != (len(self),) or not bool(torch.isfinite(one).all()):
                shape = tuple(one.shape) if isinstance(one, torch.Tensor) else type(one).__name__
                raise TaskError(
                    f"the metric gives {shape} and not a finite number for each of {len(self)} rows: it gets logits "
                    "(rows, queries, words) and the contrast of these rows"
                )
        return torch.stack(found)
