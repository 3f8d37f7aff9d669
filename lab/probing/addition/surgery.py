"""Oracle surgery: at lengths at which a model fails, give it what it may lack, and see whether it recovers.

If alignment alone helps, the model does not find the digits (a failure of positions). If the carry alone helps, it
finds the digits but loses the carry. If neither helps, it fails to write the answer or to stop. What is given at every
q_k:

- alignment: chosen heads attend only to the digits that they attend to at trained lengths
- carry: the true carry into k is written into the subspace of the residual stream that holds it
  (lab/probing/addition/interchange.py finds it)
- no leak: no head attends to digits that s_k does not need (`alignment.Destinations`); its other attention is scaled to
  sum to one

The controls are wrong forms of these, which must not help: alignment of another head of the layer, or to the digit one
place higher; the carry flipped, or written into a random subspace; attention only to the digits that the previous query
needs.

The model reads the right digits before each q_k, so each digit can recover independently of the others; exact match
needs all digits and the end.

Shapes: B sums, T tokens, H heads, Q columns and the end, D width of the model.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing import interventions
from lab.probing.addition.alignment import Aligned, Lengths, foreign_digits, queries, target_at
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Hook, Subject, check_components
from lab.probing.components import Component, Site
from lab.probing.instruments.subspaces import Subspace, check_basis
from lab.probing.interventions import only_at
from lab.probing.measured import Measured, joined

Operation: TypeAlias = Callable[[Sums], list[Hook]]
"""The hooks that change the model while it reads these sums."""


class CarrySite(NamedTuple):
    """Where the residual stream of q_k holds the carry into column k."""

    layer: int
    site: Site
    subspace: Subspace


class Accuracy(NamedTuple):
    """How well a subject adds after each operation. Axes: operation, length."""

    exact: Measured
    """The share of sums whose digits and end are all right."""
    digits: Measured
    """The mean over sums of the share of right digits, each predicted after the right digits."""


@torch.inference_mode()
def surgery(
    subject: Subject,
    lengths: Lengths,
    aligned: Sequence[Aligned] = (),
    carry: CarrySite | None = None,
    batch_size: int = 32,
) -> Accuracy:
    """Applies every operation that `aligned` and `carry` make possible, and its controls, at every length.

    Raises ModelError if a subspace does not fit the model, for heads that it does not have, or if a layer has no other
    head for the control of alignment.
    """

    def logits(operation: Operation, sums: Sums) -> torch.Tensor:
        return subject.logits(sums, operation(sums))

    changed = {name: partial(logits, operation) for name, operation in operations(subject, aligned, carry).items()}
    return shares_right("{} after surgery", "operation", changed, lengths, batch_size)


@torch.inference_mode()
def vanilla(subject: Subject, lengths: Lengths, batch_size: int = 32) -> list[Measured]:
    """The share of sums that the unchanged subject gets right, and the share of right digits; axes length."""
    measured = shares_right("{} of the subject", "operation", {"vanilla": subject.logits}, lengths, batch_size)
    return [one.at(operation="vanilla") for one in measured]


def shares_right(
    name: str, axis: str, models: Mapping[str, Callable[[Sums], torch.Tensor]], lengths: Lengths, batch_size: int
) -> Accuracy:
    """The share of sums that are right, and the share of right digits; axes (`axis`, length).

    Args:
        name: of what is measured, with {} for "exact match" or "digits right".
        axis: the name of the axis along which the models differ.
        models: functions that return the logits (B, T, V) for sums, by the labels of the axis.
    """
    exact, digits = {}, {}
    for length, sums in lengths.items():
        read = [sums.read_all(logits, batch_size) for logits in models.values()]
        exact_BX = torch.stack([one.exact_B for one in read], 1).numpy()
        digits_BX = torch.stack([one.digits_BK.nanmean(1) for one in read], 1).numpy()
        exact[length] = Measured.share(name.format("exact match"), {axis: list(models)}, exact_BX)
        digits[length] = Measured.mean(name.format("digits right"), {axis: list(models)}, digits_BX)
    return Accuracy(joined("length", exact), joined("length", digits))


def operations(subject: Subject, aligned: Sequence[Aligned], carry: CarrySite | None) -> dict[str, Operation]:
    """The operations by name, with controls last. Raises the same errors as `surgery`."""
    helping: dict[str, Operation] = {"vanilla": lambda sums: [], "no leak": lambda sums: stop_leak(subject, sums)}
    wrong: dict[str, Operation] = {"no leak, wrong place": lambda sums: stop_leak(subject, sums, columns=1)}
    if aligned:
        check_components(subject, [Component("head", one.layer, one.head) for one in aligned])
        others = _other_heads(subject, aligned)
        higher = [head._replace(offset=head.offset + 1) for head in aligned]
        helping["alignment"] = lambda sums: align(sums, aligned)
        wrong |= {"other heads": lambda sums: align(sums, others), "wrong offset": lambda sums: align(sums, higher)}
    if carry is not None:
        check_basis(carry.subspace.basis_DR, subject.width)
        elsewhere = carry._replace(subspace=carry.subspace.elsewhere(0))
        helping["carry"] = lambda sums: write_carry(sums, carry, _true_carry(sums))
        wrong["flipped carry"] = lambda sums: write_carry(sums, carry, 1 - _true_carry(sums))
        wrong["random subspace"] = lambda sums: write_carry(sums, elsewhere, _true_carry(sums))
        if aligned:
            helping["both"] = lambda sums: [*align(sums, aligned), *write_carry(sums, carry, _true_carry(sums))]
    return helping | wrong


def align(sums: Sums, aligned: Sequence[Aligned]) -> list[Hook]:
    """Hooks that set the attention of aligned heads from every q_k to their digits to their weights. Attention to all
    other tokens is scaled so that everything sums to one; a digit that does not exist gets nothing."""
    at_BQ, tokens = queries(sums), sums.tokens_BT.shape[1]
    rows: dict[int, dict[int, torch.Tensor]] = {}
    for layer, head, number, offset, weight in aligned:
        target_BQ = target_at(sums, number, offset)
        given_BQT = weight * (target_BQ[..., None] == torch.arange(tokens))
        of_layer = rows.setdefault(layer, {})
        of_layer[head] = of_layer.get(head, 0) + given_BQT
    return [interventions.pattern(layer, _give(at_BQ, of_layer)) for layer, of_layer in rows.items()]


def stop_leak(subject: Subject, sums: Sums, columns: int = 0) -> list[Hook]:
    """Hooks that remove the attention of all heads from every q_k to digits that are not needed. A head that attends to
    nothing else is unchanged.

    `columns`: for the control, q_k keeps the digits that q_{k - columns} needs: as many, but the wrong ones.
    """
    at_BQ, keep_BQ1T = queries(sums), ~foreign_digits(sums).roll(columns, dims=1)[:, :, None]

    def change(seen_BQHT: torch.Tensor) -> torch.Tensor:
        kept_BQHT = seen_BQHT * keep_BQ1T.to(seen_BQHT.device)
        total_BQH1 = kept_BQHT.sum(-1, keepdim=True)
        return torch.where(total_BQH1 > 0, kept_BQHT / total_BQH1.clamp(min=1e-30), seen_BQHT)

    def change_queries(pattern_BHTT: torch.Tensor) -> torch.Tensor:
        return only_at(at_BQ, change)(pattern_BHTT.transpose(1, 2)).transpose(1, 2)

    return [interventions.pattern(layer, change_queries) for layer in range(subject.layers)]


def write_carry(sums: Sums, carry: CarrySite, carry_BQ: torch.Tensor) -> list[Hook]:
    """Hooks that write a carry, 0 or 1, into the subspace at every q_k (`Subspace.write`)."""
    write = only_at(queries(sums), partial(carry.subspace.write, carry_BQ=carry_BQ))
    return interventions.residual(carry.layer, carry.site, write)


def _give(at_BQ: torch.Tensor, rows: dict[int, torch.Tensor]) -> interventions.Change:
    """A change of a layer's patterns that gives each head in `rows` this attention, (B, Q, T); see `align`."""

    def give(seen_BQT: torch.Tensor, given_BQT: torch.Tensor) -> torch.Tensor:
        given_BQT = given_BQT.to(seen_BQT.device)
        others_BQT = seen_BQT * (given_BQT == 0)
        left_BQ1 = 1 - given_BQT.sum(-1, keepdim=True)
        return given_BQT + others_BQT * left_BQ1 / others_BQT.sum(-1, keepdim=True).clamp(min=1e-30)

    def change(pattern_BHTT: torch.Tensor) -> torch.Tensor:
        changed = pattern_BHTT.clone()
        for head, given_BQT in rows.items():
            changed[:, head] = only_at(at_BQ, partial(give, given_BQT=given_BQT))(changed[:, head])
        return changed

    return change


def _true_carry(sums: Sums) -> torch.Tensor:
    """The carry into each column and, always 0, into the end, (B, Q)."""
    carry_BK = torch.from_numpy(sums.columns.carry)
    return torch.cat([carry_BK, torch.zeros_like(carry_BK[:, :1])], 1)


def _other_heads(subject: Subject, aligned: Sequence[Aligned]) -> list[Aligned]:
    """The control: other heads with the same digits. In each layer, heads are rotated by one random number."""
    if subject.heads == 1:
        raise ModelError(f"{subject.name}: layers of one head have no other head as a control for alignment")
    steps = np.random.default_rng(0).integers(1, subject.heads, subject.layers)
    return [one._replace(head=int(one.head + steps[one.layer]) % subject.heads) for one in aligned]
