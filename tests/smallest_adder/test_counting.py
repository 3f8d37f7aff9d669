"""Storage elements are counted, each once, whatever the names and views they go by."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.smallest_adder.graph.counting import count, distinct
from lab.smallest_adder.graph.graph import Tensor
from lab.smallest_adder.verdict import Counts


def described(tensor: torch.Tensor, kind: str = "parameter", trainable: bool = True) -> Tensor:
    layout = (int(tensor.storage_offset()), list(tensor.shape), list(tensor.stride()))
    storage = tensor.untyped_storage().data_ptr()
    return Tensor(None, "", kind, trainable, str(tensor.dtype).removeprefix("torch."), storage, *layout)


def storages(*tensors: torch.Tensor) -> dict[int, torch.Tensor]:
    found = {}
    for tensor in tensors:
        whole = tensor.untyped_storage()
        found[whole.data_ptr()] = torch.empty(0, dtype=tensor.dtype).set_(whole)
    return found


def counts(*tensors: torch.Tensor) -> Counts:
    return count([described(tensor) for tensor in tensors], storages(*tensors), 0)


def test_a_view_and_what_it_views_are_counted_once():
    whole = torch.zeros(10)
    assert counts(whole[:1], whole).parameters == 10
    assert counts(whole[:4], whole[2:6]).parameters == 6
    assert counts(whole[:1], whole).by_data_ptr == 1


def test_an_expanded_number_is_one_number():
    assert counts(torch.zeros(1).expand(4, 5)).parameters == 1


def test_float_buffers_count_and_boolean_ones_do_not():
    weights, table, mask = torch.zeros(3), torch.zeros(7), torch.ones(5, 5, dtype=torch.bool)
    tensors = [described(weights), described(table, "buffer"), described(mask, "buffer")]
    found = count(tensors, storages(weights, table, mask), 0)
    assert (found.parameters, found.buffers_free) == (10, 3)


def test_bits_are_those_of_the_number_types():
    assert counts(torch.zeros(2, dtype=torch.float64), torch.zeros(3, dtype=torch.float16)).bits == 176


def test_frozen_parameters_count_but_are_not_trainable():
    weights = torch.zeros(3)
    found = count([described(weights, trainable=False)], storages(weights), 0)
    assert (found.parameters, found.trainable) == (3, 0)


def test_thirty_million_numbers_are_counted_at_once():
    assert counts(torch.zeros(1, dtype=torch.int8).expand(30_000_000), torch.zeros(30_000_000)).parameters == 30_000_001


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 5))
def test_elements_are_what_writing_through_the_view_touches(rows, columns, down, across, offset):
    whole = torch.zeros(60)
    view = whole.as_strided((rows, columns), (down, across), offset)
    (elements,) = distinct([described(view)], storages(view)).values()
    view.fill_(1)
    assert elements == int(whole.sum())
