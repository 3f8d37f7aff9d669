"""Edges of adders whose circuit is known, attributed and kept alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import ModelError, TaskError
from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.answered import Answered, Runs
from lab.probing.benchmark.families import ones_first
from lab.probing.benchmark.known import KnownAdder
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.instruments import edges as lab
from lab.probing.instruments import path_patching
from lab.probing.instruments.path_patching import Receiver, margins
from lab.probing.report.verdicts import verdicts
from tests.probing.known_adders import comparing_adder, llama_adder, native_adder, tricase_adder

ADDERS = {
    "native": native_adder,
    "grouped": lambda: llama_adder(key_value_heads=1),
    "sharp": lambda: ones_first.adder("sharp", ones_first.Design(sharp=True), 3),
    "tricase": tricase_adder,
}
PAIRS = carry_only(4, 1, 6, seed=0)


@pytest.fixture(scope="module", params=ADDERS)
def adder(request: pytest.FixtureRequest) -> KnownAdder:
    return ADDERS[request.param]()


def of_circuit(adder: KnownAdder) -> np.ndarray:
    """The true edges, and all edges from the embedding, about which the known circuit says nothing."""
    graph = lab.Graph(adder)
    true = [[(str(u), str(r)) in adder.known.edges for r in graph.receivers] for u in graph.senders]
    from_embedding = (np.arange(len(graph.senders)) == 0)[:, None] & graph.is_edge_UR
    return np.array(true) | from_embedding


@pytest.mark.parametrize("ablation", lab.ABLATIONS)
def test_the_true_circuit_does_everything_and_less_if_any_of_its_edges_is_missing(adder, ablation):
    if ablation == "mean" and adder.name == "tricase adder":
        pytest.skip("its means look where no sum does")
    whole = of_circuit(adder)
    edges = np.argwhere(whole & (np.arange(len(whole)) > 0)[:, None])
    without = [whole.copy() for _ in edges]
    for circuit, edge in zip(without, edges, strict=True):
        circuit[tuple(edge)] = False
    nothing, everything = np.zeros_like(whole), lab.Graph(adder).is_edge_UR
    found = lab.faithfulness(adder, PAIRS, [nothing, everything, whole, *without], ablation)
    assert found.value[0] == pytest.approx(0, abs=1e-4)
    assert found.value[1] == pytest.approx(1, abs=0.01)
    if ablation == "resample":
        assert found.value[2] == pytest.approx(1, abs=0.01)
        assert (found.value[3:] < 0.95).all()


def test_a_circuit_of_one_path_has_the_effect_of_patching_it(adder):
    graph, answered = lab.Graph(adder), Answered(adder, PAIRS)
    sender, receiver = Component("head", *adder.known.carry_heads[0]), Receiver("mlp", 0)
    circuit = (
        graph.is_edge_UR & np.array([one == Component("mlp", 0) or one.layer > 0 for one in graph.senders])[:, None]
    )
    circuit[0] = [one.input in ("q", "k", "v") and one.layer == 0 for one in graph.receivers]
    circuit[graph.senders.index(sender), graph.receivers.index(receiver)] = True
    exact_B11 = margins(answered, [sender], [receiver])
    expected = (exact_B11[:, 0, 0] - answered.corrupt_B).mean() / (answered.clean_B - answered.corrupt_B).mean()
    assert expected > 0.05
    assert lab.faithfulness(adder, PAIRS, [circuit], "resample").value[0] == pytest.approx(expected, abs=0.02)


@pytest.fixture(scope="module")
def trained() -> Subject:
    """A trained model with norms before its two layers, and margins that are far from linear."""
    return open_model("zoo/adds-4-digits-nupa")


def test_the_gradient_in_what_an_mlp_reads_is_that_of_a_change_which_reaches_the_mlp_alone(trained):
    point = "blocks.0.ln2.hook_in"
    with torch.inference_mode():
        runs = Runs(Answered(trained, PAIRS), slice(None), [], [])
    slopes = runs.slopes([point])
    way_BTD = torch.randn(slopes.activations[point].shape, generator=torch.Generator().manual_seed(0))
    by_slope_B = (slopes.gradients[point] * way_BTD).sum((1, 2))

    def margin(step: float) -> torch.Tensor:
        hook = (point, lambda activation, hook: activation + step * way_BTD)
        return runs.rerun(range(trained.layers), [hook])[0]

    with torch.inference_mode():
        by_difference_B = (margin(0.01) - margin(-0.01)) / 0.02
    assert torch.allclose(by_slope_B, by_difference_B, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("ablation", lab.ABLATIONS)
def test_with_all_edges_live_a_model_with_norms_does_what_it_does(trained, ablation):
    graph = lab.Graph(trained)
    found = lab.faithfulness(trained, PAIRS, [np.zeros_like(graph.is_edge_UR), graph.is_edge_UR], ablation)
    assert found.value == pytest.approx([0, 1], abs=1e-3)


def test_attributions_are_slopes_times_differences_by_hand():
    # 14 + 13 = 27 and 19 + 18 = 37: the carry into the tens turns on. y goes from 2 to 3 with slope 1, m = 2 y - 5
    adder = native_adder()
    found = lab.attribute(adder, Pairs([(14, 13)], [(19, 18)], 1))
    for edge in (("L0 mlp", "L1 mlp"), ("L1 mlp", "logits")):
        np.testing.assert_allclose(found.at(sender=edge[0], receiver=edge[1]).value, [1, 1], atol=0.01)
    assert np.isnan(found.at(sender="L1 mlp", receiver="L0 mlp").value).all()
    graph = lab.Graph(adder)
    assert (~np.isnan(found.value[0])).sum() == graph.count == 151


def test_a_switch_that_is_flat_at_either_end_is_seen_by_integrated_gradients_alone():
    adder = ADDERS["sharp"]()
    sender = f"L0H{adder.known.carry_heads[0][1]}"
    sizes = {steps: np.abs(lab.attribute(adder, PAIRS, steps).at(sender=sender, receiver="L0 mlp").value).max()
             for steps in (1, 10)}  # fmt: skip
    assert sizes[1] == pytest.approx(0, abs=1e-4)
    assert sizes[10] > 0.2


def test_the_best_edges_reach_the_whole_answer_and_areas_are_those_of_the_curve():
    adder = ADDERS["sharp"]()
    scores = np.abs(np.nan_to_num(lab.attribute(adder, PAIRS, 10).value)).max(0)
    curve = lab.curve(adder, PAIRS, scores, sizes=(0.0, 0.05, 1.0), ablations=("resample",))
    np.testing.assert_allclose(curve.faithfulness.value, [[0, 1, 1]], atol=0.01)
    assert curve.cpr["resample"] == pytest.approx(0.975, abs=0.01)
    assert curve.cmd["resample"] == pytest.approx(0.025, abs=0.01)
    assert lab.areas_of((0.0, 0.5, 1.0), np.array([0.0, 1.5, 1.0])) == (1.0, pytest.approx(0.5))


@given(st.integers(0, 151), st.integers(0, 99))
def test_the_largest_edges_are_as_many_as_asked_for_and_none_is_smaller_than_one_left_out(count, seed):
    graph = _GRAPH
    scores = np.random.default_rng(seed).normal(size=graph.is_edge_UR.shape)
    chosen = graph.largest(scores, count)
    assert chosen.sum() == count
    rest = graph.is_edge_UR & ~chosen
    if count and rest.any():
        assert np.abs(scores[chosen]).min() >= np.abs(scores[rest]).max()


_GRAPH = lab.Graph(native_adder())


def test_what_cannot_be_measured_is_refused_in_one_line():
    adder = native_adder()
    with pytest.raises(TaskError, match=r"^ablation 'zero': should be one of resample, mean$"):
        lab.faithfulness(adder, PAIRS, [], "zero")  # type: ignore[arg-type]
    with pytest.raises(TaskError, match=r"^steps=0: should be 1 or more$"):
        lab.attribute(adder, PAIRS, steps=0)
    with torch.no_grad():
        adder.bridge.unembed.original_component.weight.zero_()
    with pytest.raises(ModelError, match="in 0 % of 6 pairs"):
        lab.attribute(adder, PAIRS)


def test_a_comparison_in_attention_adds_up_at_the_embedding_and_not_at_the_head_that_compares():
    """EAP-IG gives the one edge that leaves the head a third of its effect; along the path it gets all of it."""
    adder, pairs = comparing_adder(1.0), carry_only(4, 1, 16, seed=0)
    by_points, along_path = (lab.attributed(adder, pairs, 20, path) for path in (False, True))
    exact = path_patching.patch_paths(adder, pairs, [Component("head", 1, 0)], [Receiver("mlp", 1)]).effect
    assert exact.value == pytest.approx(1, abs=0.02)
    for found, score in ((by_points, 0.35), (along_path, 0.98)):
        assert np.nansum(found.effect.at(sender="L0 pre").value, -1) == pytest.approx([1, 1], abs=0.02)
        assert found.effect.at(sender="L1H0", receiver="L1 mlp").value == pytest.approx(score, abs=0.02)
    gap, node, into, out = lab.leaks(by_points.flow)[0]
    assert (node, into, out) == ("L1H0", pytest.approx(0.99, abs=0.02), pytest.approx(0.35, abs=0.02))
    assert gap == into - out
    assert lab.leaks(along_path.flow)[0][0] < 0.03
    curve = lab.curve(adder, pairs, np.abs(np.nan_to_num(along_path.effect.value)).max(0), (0.0, 1.0)).faithfulness
    warned, fine = (verdicts("edges", [one.effect, curve, one.flow])[-1] for one in (by_points, along_path))
    assert warned == (
        "The scores of L1H0's edges are not exact: 99 % of the effect flows into it, 35 % out of it; "
        "take more steps, or patch its paths."
    )
    assert fine.startswith("The edges add up: even at the worst node, ")


@pytest.mark.parametrize("name", ["native", "grouped", "zoo"])
def test_along_the_path_what_flows_into_a_node_flows_out_of_it(name):
    subject = open_model("zoo/adds-4-digits") if name == "zoo" else ADDERS[name]()
    found = lab.attributed(subject, PAIRS, 10, along_path=True)
    assert lab.leaks(found.flow)[0][0] < 0.05
    assert np.nansum(found.effect.at(sender="L0 pre").value, -1) == pytest.approx([1, 1], abs=0.05)
    embedding = found.flow.axes["node"]
    assert "L0 pre" not in embedding
    assert "logits" not in embedding


def test_a_switch_that_turns_between_two_points_of_a_path_is_found_by_halving_steps():
    adder, pairs = comparing_adder(2.0), carry_only(4, 1, 4, seed=0)
    rough, fine = (lab.attributed(adder, pairs, steps, path) for steps, path in ((10, False), (10, True)))
    assert lab.leaks(rough.flow)[0][0] > 0.3
    assert lab.leaks(fine.flow)[0][0] < 0.1
