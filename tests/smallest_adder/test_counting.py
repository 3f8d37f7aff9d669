"""Storage elements are counted, each once, whatever the names and views they go by."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.smallest_adder.counting import count, distinct, literals, tensors_of
from lab.smallest_adder.tensors import clear_unseen, described


class Holder(torch.nn.Module):
    def __init__(self, *tensors: torch.Tensor, **buffers: torch.Tensor) -> None:
        super().__init__()
        for place, tensor in enumerate(tensors):
            self.register_parameter(f"p{place}", torch.nn.Parameter(tensor))
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)


def counts(module: torch.nn.Module):
    return count(tensors_of(described(module)), "x = 1")


def test_a_view_and_what_it_views_are_counted_once():
    whole = torch.zeros(10)
    assert counts(Holder(whole[:1], whole)).parameters == 10
    assert counts(Holder(whole[:4], whole[2:6])).parameters == 6
    assert counts(Holder(whole[:1], whole)).by_data_ptr == 1


def test_an_expanded_number_is_one_number():
    assert counts(Holder(torch.zeros(1).expand(4, 5))).parameters == 1


def test_float_buffers_count_and_boolean_ones_do_not():
    module = Holder(torch.zeros(3), table=torch.zeros(7), mask=torch.ones(5, 5, dtype=torch.bool))
    assert counts(module).parameters == 10
    assert counts(module).buffers_free == 3


def test_bits_are_those_of_the_number_types():
    assert counts(Holder(torch.zeros(2, dtype=torch.float64), torch.zeros(3, dtype=torch.float16))).bits == 176


def test_frozen_parameters_count_but_are_not_trainable():
    module = Holder(torch.zeros(3)).requires_grad_(False)
    assert (counts(module).parameters, counts(module).trainable) == (3, 0)


def test_numbers_in_the_source_are_literals():
    assert literals("x = [1, -2.5, True, 'a', 1e3]\ndef f(y=4): pass") == 4


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 5))
def test_elements_are_what_writing_through_the_view_touches(rows, columns, down, across, offset):
    whole = torch.zeros(60)
    view = whole.as_strided((rows, columns), (down, across), offset)
    (tensor,) = tensors_of(described(Holder(view)))
    view.fill_(1)
    assert distinct([tensor]) == int(whole.sum())


def test_what_no_name_covers_is_cleared():
    whole = torch.arange(1.0, 7.0)
    clear_unseen(Holder(whole[1:3]))
    assert whole.tolist() == [0, 2, 3, 0, 0, 0]
