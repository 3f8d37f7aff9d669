"""Where a carry is in the stream: written exactly there, and nowhere else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ModelError
from lab.probing.addition.pairs import cross_digit
from lab.probing.instruments.subspaces import Subspace, check_basis, random_basis
from lab.probing.interventions import read_queries
from tests.probing.known_adders import llama_adder, native_adder


@pytest.mark.parametrize("make", [native_adder, llama_adder])
def test_a_subspace_knows_where_streams_with_and_without_a_carry_are(make):
    adder, pairs = make(), cross_digit(4, 2, 60, seed=0)
    sums = adder.sums([*pairs.base, *pairs.source])
    stream_ND = read_queries(adder, sums, [(0, "post")], [2], 60)[0, :, 0]
    found = Subspace.of(adder.known.carry_D[:, None], stream_ND, sums.columns.carry[:, 2])
    np.testing.assert_allclose([*found.mean_0_R, *found.mean_1_R], [0, 1], atol=0.05)
    with pytest.raises(
        ModelError, match=r"^the basis of a subspace should be orthonormal; V\^T V is off by 3, at most"
    ):
        Subspace.of(2 * adder.known.carry_D[:, None], stream_ND, sums.columns.carry[:, 2])


def test_a_basis_that_no_stream_of_this_width_has_is_refused():
    with pytest.raises(ModelError, match=r"^a subspace's basis of shape \(7, 1\): should be \(20, dimensions\)$"):
        check_basis(torch.eye(7)[:, :1], 20)
    with pytest.raises(ModelError, match=r"shape \(2, 3\): should be \(2, dimensions\)$"):
        check_basis(torch.ones(2, 3), 2)
    with pytest.raises(ModelError, match=r"V\^T V is off by nan"):
        check_basis(torch.full((2, 1), torch.nan), 2)


WIDTHS_AND_RANKS = st.integers(1, 12).flatmap(lambda width: st.tuples(st.just(width), st.integers(0, min(width, 6))))


@given(WIDTHS_AND_RANKS, st.integers(0, 99))
def test_random_bases_are_orthonormal(shape, seed):
    width, rank = shape
    basis_DR = random_basis(width, rank, seed)
    torch.testing.assert_close(basis_DR.T @ basis_DR, torch.eye(rank), atol=1e-5, rtol=0)
    check_basis(basis_DR, width)


@given(WIDTHS_AND_RANKS, st.integers(0, 99))
def test_what_is_written_is_in_the_subspace_and_all_else_stays(shape, seed):
    width, rank = shape
    generator = torch.Generator().manual_seed(seed)
    mean_0_R, mean_1_R = torch.randn(2, rank, generator=generator)
    there = Subspace(random_basis(width, rank, seed), mean_0_R, mean_1_R)
    for subspace in (there, there.elsewhere(seed + 1)):
        basis_DR = subspace.basis_DR
        stream_BQD = torch.randn(2, 3, width, generator=generator)
        carry_BQ = torch.tensor([[0, 1, 1], [1, 0, 0]])
        written_BQD = subspace.write(stream_BQD, carry_BQ)
        wanted_BQR = torch.where(carry_BQ[..., None] == 1, mean_1_R, mean_0_R)
        torch.testing.assert_close(written_BQD @ basis_DR, wanted_BQR, atol=1e-4, rtol=0)
        moved_BQD = written_BQD - stream_BQD
        torch.testing.assert_close(moved_BQD @ basis_DR @ basis_DR.T, moved_BQD, atol=1e-4, rtol=0)
