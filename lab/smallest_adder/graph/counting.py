"""How large a model is: by the challenge's rule, and as others count.

The rule: distinct storage elements of all parameters, trainable and frozen, and of non-boolean buffers. The
public verifier counts, for each `data_ptr`, only the first tensor seen; a small view that is registered first fools it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import torch

from lab.smallest_adder.graph.graph import Tensor
from lab.smallest_adder.verdict import Counts


def count(tensors: Sequence[Tensor], storages: Mapping[int, torch.Tensor], literals: int) -> Counts:
    """The size of a model by every rule; `literals`: how many numbers its code has."""
    rule = [tensor for tensor in tensors if tensor.counts]
    parameters = [tensor for tensor in rule if tensor.kind == "parameter"]
    first_seen = {(tensor.storage, tensor.offset): tensor for tensor in reversed(rule)}
    return Counts(
        sum(distinct(rule, storages).values()),
        literals,
        sum(distinct((tensor for tensor in parameters if tensor.trainable), storages).values()),
        sum(distinct(parameters, storages).values()),
        sum(math.prod(tensor.shape) for tensor in first_seen.values()),
        sum(_bits(storages[place]) * number for place, number in distinct(rule, storages).items()),
    )


def _bits(storage: torch.Tensor) -> int:
    return 8 * storage.element_size() // (1 + storage.is_complex())


def distinct(tensors: Iterable[Tensor], storages: Mapping[int, torch.Tensor]) -> dict[int, int]:
    """How many numbers of each storage the tensors cover; a complex number is two."""
    covered: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        whole = covered.setdefault(tensor.storage, torch.zeros(len(storages[tensor.storage]), dtype=torch.bool))
        once = [size if stride else min(size, 1) for size, stride in zip(tensor.shape, tensor.stride, strict=True)]
        tensor._replace(shape=once).of(whole).fill_(True)
    return {place: int(whole.sum()) * (1 + storages[place].is_complex()) for place, whole in covered.items()}
