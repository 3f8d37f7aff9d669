"""How large a model is: by the challenge's rule, and as others count.

The rule: distinct storage elements of all parameters, trainable and frozen, and of non-boolean buffers. Counting
tensors by the `data_ptr` of the first one seen, as the public verifier does, is fooled by a small view that is
registered first.
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
        sum(8 * storages[place].element_size() * number for place, number in distinct(rule, storages).items()),
    )


def distinct(tensors: Iterable[Tensor], storages: Mapping[int, torch.Tensor]) -> dict[int, int]:
    """How many elements of each storage the tensors cover."""
    covered: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        whole = covered.setdefault(tensor.storage, torch.zeros(len(storages[tensor.storage]), dtype=torch.bool))
        once = [size if stride else min(size, 1) for size, stride in zip(tensor.shape, tensor.stride, strict=True)]
        tensor._replace(shape=once).of(whole).fill_(True)
    return {storage: int(whole.sum()) for storage, whole in covered.items()}
