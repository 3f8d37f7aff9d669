"""Sentences about arrays made by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.probing.addition.head_contents import PARTS
from lab.probing.components import Component
from lab.probing.instruments.patching import STRONGEST
from lab.probing.measured import Measured
from lab.probing.report.assembly import circuit
from lab.probing.report.circuit import ANSWER, Arrow, Circuit, diagram
from lab.probing.report.telling import percent
from lab.probing.report.verdicts import verdicts


def exact(name: str, axes: dict[str, list], value: np.ndarray) -> Measured:
    """An array whose intervals have no width."""
    return Measured(name, axes, value, value, value, np.full(value.shape, 10))


def test_the_head_that_other_pairs_chose_is_named_even_if_these_pairs_would_choose_another():
    effects = np.array([[0.2, -0.6], [0.5, 0.4]])
    axes = {"place": ["everywhere"], "carry": ["0 to 1"], "layer": [0, 1], "head": [0, 1]}
    chosen = exact("effect of the strongest heads", {"head": ["L1H1", "L1H0"]}, np.zeros(2))
    (sentence,) = verdicts("patching", [exact("effect", axes, effects[None, None]), chosen])
    assert sentence == "L1H1 moves 40 % (40-40, n = 10) of the carry, 0 to 1; the median head 45 %."
    chosen = exact("effect of the strongest heads", {"head": ["L0H1"]}, np.zeros(1))
    (sentence,) = verdicts("patching", [exact("effect", axes, effects[None, None]), chosen])
    assert sentence == (
        "L0H1, the strongest head on other pairs, does not clearly move the carry, 0 to 1: -60 % (-60--60, n = 10); "
        "the median head 45 %."
    )


def test_readings_that_the_sums_do_not_tell_apart_are_both_named():
    axes = {"head": ["L1H1"], "column": [2]}
    shares = np.array([[[0.6, 0.7, 0.9, 0.1, 0.2]]])
    readings = ["carry", "straight line", "digit sum", "a's digit", "b's digit"]
    explained = exact("explained", {**axes, "reading": readings}, shares)
    effect = exact("effect", {**axes, "part": ["all of it", "its carry direction"]}, np.array([[[0.5, 0.4]]]))
    for low, said in (
        (-0.01, "follows a straight line or the carry, which"),
        (0.01, "follows a straight line best: 70 % (70-70, n = 10)"),
    ):
        value, lower, upper, n = (np.array([[x]]) for x in (0.1, low, 0.2, 10))
        lead = Measured("lead", axes, value, lower, upper, n)
        sentence, _ = verdicts("head_contents", [explained, explained, effect, lead])
        assert said in sentence


def test_edges_that_are_too_few_at_every_share_are_said_to_be_too_few():
    axes = {"ablation": ["mean", "resample"], "share of edges": [0.015, 0.1]}
    curve = exact("faithfulness", axes, np.array([[0.2, 0.8], [0.5, 0.95]]))
    assert verdicts("edges", [attributed(0.4, 0.6), curve]) == [
        "Under mean ablation, no circuit clearly does 90 % of what the model does.",
        "Under resample ablation, 10.0 % of the edges do 95 % (95-95, n = 10) of what the model does; 1.5 % do 50 %.",
        "The effects of the embedding's edges add up to 1.00 and 1.00 (1 if exact).",
    ]


def test_a_share_of_edges_counts_only_if_no_larger_share_falls_short():
    axes = {"ablation": ["resample"], "share of edges": [0.01, 0.02, 0.1]}
    curve = exact("faithfulness", axes, np.array([[0.95, 0.7, 1.0]]))
    assert "10.0 % of the edges do" in verdicts("edges", [attributed(0.4, 0.6), curve])[0]


def test_attributed_effects_that_do_not_add_up_are_said_not_to_be_exact():
    curve = exact("faithfulness", {"ablation": ["mean"], "share of edges": [1.0]}, np.array([[1.0]]))
    assert verdicts("edges", [attributed(-1.0, -0.5), curve])[1] == (
        "The effects of the embedding's edges add up to -1.50 and -1.50 (1 if exact); take more steps."
    )


def attributed(*effects: float) -> Measured:
    """The effects of the embedding's edges to as many receivers."""
    axes = {"carry": ["0 to 1", "1 to 0"], "sender": ["L0 pre"], "receiver": [f"L{n} mlp" for n in range(len(effects))]}
    return exact("attributed effect of an edge", axes, np.array([[effects], [effects]]))


AXES = {"carry": ["0 to 1", "1 to 0"], "layer": [0], "head": [0, 1], "place": ["everywhere"]}


def uncertain(name: str, axes: dict[str, list], value: np.ndarray, width: np.ndarray) -> Measured:
    return Measured(name, axes, value, value - width, value + width, np.full(value.shape, 10))


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_the_drawing_never_gives_a_head_another_number_than_the_sentence_about_it(effects, widths):
    shape = (2, 1, 2, 1)
    heads = uncertain("effect of a head", AXES, np.reshape(effects, shape), np.reshape(widths, shape))
    strongest = exact(STRONGEST, {"head": ["L0H1"]}, np.zeros(1))
    (*said,) = verdicts("patching", [heads, strongest])
    drawn = circuit({"patching": [heads, strongest]})
    one = Component("head", 0, 1)
    if drawn.effects.get(one, 0) > 0.101:
        (box,) = (box for box in diagram(drawn).boxes if box.name == "L0H1")
        assert any(f" {percent(drawn.effects[one])} (" in sentence for sentence in said)
        assert box.lines == [f"carry {percent(drawn.effects[one], '')}"]
    assert "-0 %" not in " ".join(said)


def test_a_direction_that_is_not_clear_is_neither_said_nor_drawn():
    """The head brings 47 % about from 0 to 1; 72 % from 1 to 0 may be nothing."""
    value, width = np.zeros((2, 2, 1, 2, 1))
    value[:, 0, 1, 0], width[:, 0, 1, 0] = (0.47, 0.72), (0.1, 0.8)
    heads = uncertain("effect of a head", AXES, value, width)
    said = verdicts("patching", [heads, exact(STRONGEST, {"head": ["L0H1"]}, np.zeros(1))])
    assert said[0].startswith("L0H1 moves 47 % (37-57, n = 10) of the carry, 0 to 1;")
    assert "does not clearly move the carry, 1 to 0: 72 %" in said[1]
    assert circuit({"patching": [heads]}).effects == {Component("head", 0, 1): 0.47}


@pytest.mark.parametrize("share", [-0.0, -0.004, 0.004, -1e-12])
def test_nothing_is_less_than_no_per_cent(share):
    assert percent(share) == "0 %"
    assert repr(Circuit([], {}, [Arrow("L0H1", ANSWER, share)])) == "L0H1 -> s_k 0%"


def contents(parts: list[float], carry: list[str]) -> list[str]:
    axes = {"head": ["L0H3"], "column": [2]}
    readings = ["carry", "straight line", "digit sum", "a's digit", "b's digit"]
    explained = exact("explained", {**axes, "reading": readings}, np.array([[[0.6, 0.9, 0.9, 0.1, -0.001]]]))
    values = np.stack([np.array([parts]), np.array([parts]) / 2])[: len(carry)]
    effect = exact("effect", {"carry": carry, "head": ["L0H3"], "part": list(PARTS)}, values)
    return verdicts("head_contents", [explained, explained, effect, exact("lead", axes, np.array([[0.2]]))])


def test_contents_say_which_token_they_read_and_what_the_whole_head_does():
    assert contents([0.0, -0.003, 0.0, 0.59], ["0 to 1", "1 to 0"]) == [
        "What L0H3 writes for column 2 follows a straight line best: 90 % (90-90, n = 10) of its variance, the carry "
        "60 %.",
        "This direction of L0H3 moves 0 % (0-0, n = 10) of the carry, 0 to 1; all that it writes there 0 %, at all "
        "tokens 59 %.",
    ]


RANDOM = np.random.default_rng(0)


def drawn(name: str, **axes: list) -> Measured:
    value = RANDOM.uniform(-1, 1, [len(labels) for labels in axes.values()])
    return uncertain(name, axes, value, np.full(value.shape, 0.1))


@pytest.mark.parametrize("ways", [{"carry": ["0 to 1", "1 to 0"]}, {"direction": ["base to source", "source to base"]}])
def test_a_sentence_has_at_most_thirty_words_with_its_interval_and_n(ways):
    heads = drawn("effect of a head", **ways, layer=[0, 1], head=[0, 1], place=["everywhere"])
    paths = {**ways, "sender": ["L0H1", "L0 mlp"], "receiver": ["L10H12-15.k", "logits"]}
    found = {
        "patching": [heads, drawn(STRONGEST, head=["L1H0"])],
        "path_patching": [drawn("effect of a path", **paths), drawn("control", **paths)],
        "competence": [drawn("pairs answered right", **ways), drawn("gap", **ways)],
        "edges": [
            drawn("attributed effect of an edge", **ways, sender=["L0 pre"], receiver=["logits"]),
            drawn("faithfulness", ablation=["mean", "resample"], **{"share of edges": [0.0, 0.1, 1.0]}),
            drawn("flow through a node", **ways, node=["L0H1", "L0 mlp"], way=["in", "out"]),
        ],
    }
    for name, measured in found.items():
        for sentence in verdicts(name, measured):
            assert len(sentence.split()) <= 30, sentence
            if name in ("patching", "competence"):
                assert "n = 10" in sentence
