"""Probes against adders whose stream is known, and the regression against cases that have one answer."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import TaskError
from lab.probing.addition.pairs import operands
from lab.probing.addition.probes import TARGETS, fit, labels, one_hot_operands, probe
from lab.probing.benchmark.known import KnownAdder
from lab.probing.interventions import read_queries
from tests.probing.known_adders import llama_adder, native_adder


@pytest.fixture(scope="module", params=[native_adder, llama_adder])
def adder(request: pytest.FixtureRequest) -> KnownAdder:
    return request.param()


def test_targets_are_those_of_the_written_sum():
    # 3578 + 426 = 4004, from the ones up; the carry out of a column is the one into the next
    carry_in, carry_out, tricase, digit = labels(native_adder().sums([(3578, 426)]))[:, 0].tolist()
    assert carry_in == [0, 1, 1, 1]
    assert carry_out == [1, 1, 1, 0]
    assert tricase == [1, 0, 0, -1]
    assert digit == [4, 0, 0, 4]


def test_operands_are_one_hot_digits_of_the_column_and_of_the_one_below():
    hot_BKF = one_hot_operands(native_adder().sums([(52, 17)]))
    assert hot_BKF.shape == (1, 2, 50)
    assert hot_BKF[0, 0].nonzero().flatten().tolist() == [2, 17]
    assert hot_BKF[0, 1].nonzero().flatten().tolist() == [5, 11, 22, 37, 49]


def test_streams_are_read_at_the_token_before_the_digit(adder: KnownAdder):
    sums = adder.sums(operands("uniform", 3, 0, 5))
    stream_GBKD = read_queries(adder, sums, [(0, "post"), (1, "post")], [2, 0], batch_size=2)
    carry_BK = stream_GBKD[0] @ adder.known.carry_D
    digit_BK = stream_GBKD[1] @ adder.known.digit_D
    np.testing.assert_allclose(carry_BK, sums.columns.carry[:, [2, 0]], atol=0.05)
    np.testing.assert_allclose(digit_BK, sums.columns.sum[:, [2, 0]], atol=0.3)


def test_a_regression_finds_classes_that_lie_on_a_line_and_groups_do_not_mix():
    digit_N = torch.arange(10).repeat(20)
    noise_N = torch.randn(200, generator=torch.Generator().manual_seed(0))
    features_GNF = torch.stack([digit_N.float(), noise_N])[:, :, None]
    right_GN = fit(features_GNF, digit_N, 10, 1e-5).predict(features_GNF) == digit_N
    assert right_GN[0].all()
    assert right_GN[1].float().mean() < 0.3


@settings(max_examples=5)
@given(st.floats(0.01, 100), st.floats(-100, 100))
def test_the_scale_and_the_origin_of_features_change_nothing(scale, shift):
    generator = torch.Generator().manual_seed(0)
    features_1NF = torch.randn(1, 60, 3, generator=generator, dtype=torch.float64)
    class_N = (features_1NF[0, :, 0] > 0).long()
    moved_1NF = features_1NF * scale + shift
    found, moved = (fit(x.float(), class_N, 2, 1e-2).predict(x.float()) for x in (features_1NF, moved_1NF))
    assert (found == moved).float().mean() > 0.95


def test_features_that_do_not_vary_are_left_out():
    features_1NF = torch.tensor([[[0.0, 7.0], [1.0, 7.0], [0.0, 7.0], [1.0, 7.0]]])
    found = fit(features_1NF, torch.tensor([0, 1, 0, 1]), 2, 1e-2)
    assert found.weight_GFC[0, 1].tolist() == [0, 0]
    assert found.predict(features_1NF).tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize("adder", [native_adder, pytest.param(llama_adder, marks=pytest.mark.slow)])
def test_probes_find_what_the_adder_has_and_their_controls_find_nothing(adder: Callable[[], KnownAdder]):
    subject = adder()
    sums = subject.sums(operands("uniform", 3, 0, 400))
    found = probe(subject, sums, columns=[1], sites=["mid", "post"], batch_size=400)
    accuracy = found.accuracy.at(column=1)
    # a carry can be read before it is computed, and from the operands alone, so reading it is no evidence
    for layer, site in [(0, "mid"), (0, "post"), (1, "mid")]:
        assert accuracy.at(layer=layer, site=site, target="carry in").value > 0.95
    assert found.operands.at(column=1, target="carry in").value > 0.95
    # a digit cannot; at the end it can be read, even for pairs of digits that the probe has never seen
    digit = {name: getattr(found, name).at(column=1, target="sum") for name in found._fields}
    for layer, site in subject.known.digit_sites:
        assert digit["accuracy"].at(layer=layer, site=site).value > 0.95
        assert digit["held_out_pairs"].at(layer=layer, site=site).value > 0.9
        assert digit["random_labels"].at(layer=layer, site=site).value < 0.4
    assert digit["accuracy"].at(layer=1, site="mid").value < 0.5
    assert digit["operands"].value < 0.4
    assert digit["majority"].value < 0.3
    assert np.all(digit["shuffled"].value < 0.3)
    assert digit["accuracy"].n.tolist() == [[100] * 2] * 2


def test_there_is_no_carry_into_the_ones_and_nothing_to_read():
    subject = native_adder()
    found = probe(subject, subject.sums(operands("uniform", 2, 0, 16)), layers=[0], sites=["pre"], columns=[0])
    for part in found:
        assert np.isnan(part.at(column=0, target="carry in").value).all()
        assert not np.isnan(part.at(column=0, target="sum").value).any()
    assert found.accuracy.axes == {"layer": [0], "site": ["pre"], "column": [0], "target": list(TARGETS)}


def test_a_column_of_too_few_sums_is_refused_in_one_line(adder: KnownAdder):
    with pytest.raises(TaskError, match=r"^column 2: 3 of 12 sums have it; a probe needs 8 at least$"):
        probe(adder, adder.sums([*operands("uniform", 1, 0, 9), (900, 12), (900, 13), (900, 14)]), columns=[2])
