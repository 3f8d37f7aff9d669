"""Sentences about arrays made by hand."""

import numpy as np

from lab.probing.measured import Measured
from lab.probing.report.verdicts import verdicts


def exact(name: str, axes: dict[str, list], value: np.ndarray) -> Measured:
    """An array whose intervals have no width."""
    return Measured(name, axes, value, value, value, np.full(value.shape, 10))


def test_the_head_that_other_pairs_chose_is_named_even_if_these_pairs_would_choose_another():
    effects = np.array([[0.2, -0.6], [0.5, 0.4]])
    axes = {"place": ["everywhere"], "carry": ["0 to 1"], "layer": [0, 1], "head": [0, 1]}
    chosen = exact("effect of the strongest heads", {"head": ["L1H1", "L1H0"]}, np.zeros(2))
    (sentence,) = verdicts("patching", [exact("effect", axes, effects[None, None]), chosen])
    assert sentence.startswith("L1H1 brings the carry about: 40 % (40-40)")
    assert sentence.endswith("(the 10 pairs of which both sums are right).")
    chosen = exact("effect of the strongest heads", {"head": ["L0H1"]}, np.zeros(1))
    (sentence,) = verdicts("patching", [exact("effect", axes, effects[None, None]), chosen])
    assert sentence == "L0H1, the strongest head on other pairs, does not clearly bring the carry about 0 to 1."


def test_readings_that_the_sums_do_not_tell_apart_are_both_named():
    axes = {"head": ["L1H1"], "column": [2]}
    shares = np.array([[[0.6, 0.7, 0.9, 0.1, 0.2]]])
    readings = ["carry", "straight line", "digit sum", "a's digit", "b's digit"]
    explained = exact("explained", {**axes, "reading": readings}, shares)
    effect = exact("effect", {**axes, "part": ["all of it", "its carry direction"]}, np.array([[[0.5, 0.4]]]))
    for low, said in ((-0.01, "follows a straight line or the carry, which"), (0.01, "follows a straight line best")):
        value, lower, upper, n = (np.array([[x]]) for x in (0.1, low, 0.2, 10))
        lead = Measured("lead", axes, value, lower, upper, n)
        (sentence,) = verdicts("head_contents", [explained, explained, effect, lead])
        assert said in sentence


def test_edges_that_are_too_few_at_every_share_are_said_to_be_too_few():
    axes = {"ablation": ["mean", "resample"], "share of edges": [0.015, 0.1]}
    curve = exact("faithfulness", axes, np.array([[0.2, 0.8], [0.5, 0.95]]))
    assert verdicts("edges", [attributed(0.4, 0.6), curve]) == [
        "Under mean ablation, no circuit clearly does at least 90 % of what the model does.",
        "Under resample ablation, 10.0 % of the edges do at least 90 % of what the model does.",
        "The attributed effects of the embedding's edges add up to 1.00 and 1.00 (1 if exact).",
    ]


def test_a_share_of_edges_counts_only_if_no_larger_share_falls_short():
    axes = {"ablation": ["resample"], "share of edges": [0.01, 0.02, 0.1]}
    curve = exact("faithfulness", axes, np.array([[0.95, 0.7, 1.0]]))
    assert "10.0 % of the edges do" in verdicts("edges", [attributed(0.4, 0.6), curve])[0]


def test_attributed_effects_that_do_not_add_up_are_said_not_to_be_exact():
    curve = exact("faithfulness", {"ablation": ["mean"], "share of edges": [1.0]}, np.array([[1.0]]))
    assert verdicts("edges", [attributed(-1.0, -0.5), curve])[1] == (
        "The attributed effects of the embedding's edges add up to -1.50 and -1.50 (1 if exact), so these scores are "
        "not exact: take more steps."
    )


def attributed(*effects: float) -> Measured:
    """The effects of the embedding's edges to as many receivers."""
    axes = {"carry": ["0 to 1", "1 to 0"], "sender": ["L0 pre"], "receiver": [f"L{n} mlp" for n in range(len(effects))]}
    return exact("attributed effect of an edge", axes, np.array([[effects], [effects]]))
