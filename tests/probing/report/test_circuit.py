import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import TaskError
from lab.probing.addition.catalogue import INSTRUMENTS, Session
from lab.probing.components import Component
from lab.probing.config import ProbeConfig
from lab.probing.measured import Measured
from lab.probing.report.assembly import circuit
from lab.probing.report.circuit import ANSWER, Circuit, diagram, svg
from lab.probing.report.verdicts import in_short, unable, verdicts
from tests.probing.known_adders import llama_adder, native_adder, tricase_adder

NEEDED = ["competence", "alignment", "patching", "path_patching"]
ASKED = {"lengths": [2, 3, 4], "trained": 4, "column": 2, "per_length": 16, "pairs": 24}


def found(subject, *names: str) -> dict[str, list[Measured]]:
    config = ProbeConfig.model_validate({"name": "c", "subject": "x", "instruments": ["patching"], "sums": ASKED})
    session = Session(subject, config)
    return {name: INSTRUMENTS[name](session) for name in names or NEEDED}


def told(drawn) -> set[tuple[str, str]]:
    return {(arrow.start, arrow.end.replace(ANSWER, "logits")) for arrow in drawn.arrows if "_" not in arrow.start}


@pytest.fixture(scope="module")
def measured() -> dict[str, list[Measured]]:
    return found(native_adder(), *NEEDED, "destinations", "surgery")


@pytest.fixture(scope="module")
def drawn(measured) -> Circuit:
    return circuit({name: measured[name] for name in NEEDED})


@pytest.mark.slow
@pytest.mark.parametrize("adder", [native_adder, llama_adder, tricase_adder])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_circuit_of_an_adder_made_by_hand_is_its_own(adder, seed):
    subject = adder(seed)
    drawn = circuit(found(subject))
    assert told(drawn) == {(sender, receiver.partition(".")[0]) for sender, receiver in subject.known.edges}
    assert subject.known.nodes == {part for part in drawn.parts if part in drawn.effects}
    looks = {(arrow.start, arrow.end) for arrow in drawn.arrows if "_" in arrow.start}
    for (layer, head), (number, offset) in subject.known.looks_at.items():
        assert (f"{number}_k{offset:+d}" if offset else f"{number}_k", f"L{layer}H{head}") in looks


@pytest.mark.slow
def test_the_sentences_name_what_the_adder_is_made_of(measured):
    subject = native_adder()
    said = {name: " ".join(verdicts(name, arrays)) for name, arrays in measured.items()}
    for (layer, head), (number, _) in subject.known.looks_at.items():
        assert f"L{layer}H{head} looks at {number}'s digit" in said["alignment"] or (layer, head) == (0, 4)
    assert re.search(
        r"L0H3 passes 100 % \(.*\) of the carry to L0 mlp, 0 to 1; heads at random at most 0 %", said["path_patching"]
    )
    assert "nothing to mend" in said["surgery"]
    assert not unable("competence", measured["competence"])


@pytest.mark.slow
def test_a_probe_ends_in_five_lines_at_most_that_name_the_head_that_carries(measured):
    lines = in_short(measured)
    assert len(lines) <= 5
    assert any(
        re.match(r"L0H[23] moves \d+ % \(\d+-\d+, n = \d+\) of the carry, 0 to 1; the median", line) for line in lines
    )
    assert in_short(measured, ["edges"])[-1] == "Not measured: edges."
    assert len(in_short(measured, ["edges"])) <= 5


def test_without_an_instrument_that_names_parts_there_is_no_circuit():
    assert circuit({}).parts == []
    assert svg(circuit({})) == ""
    assert circuit(found(native_adder(), "competence", "destinations")).parts == []


def test_keys_and_values_that_heads_share_are_told_to_all_heads_of_the_group():
    receivers = ["L0H0.q", "L0H1.q", "L1H0.q", "L1H1.q", "L0H0-1.k", "L1H0-1.k", "logits"]
    effect = np.zeros((1, 1, 1, len(receivers)))
    effect[..., receivers.index("L1H0-1.k")] = 0.9
    axes = {"carry": ["0 to 1"], "sender": ["L0H1"], "receiver": receivers}
    paths = Measured.mean("effect of a path", axes, effect)
    assert told(circuit({"path_patching": [paths]})) == {("L0H1", "L1H0"), ("L0H1", "L1H1")}
    alone = {"carry": ["0 to 1"], "layer": [0, 1], "head": [0, 1], "place": ["everywhere"]}
    heads = Measured.mean("effect of a head", alone, np.array([[0, 0.9], [0, 0.9]])[None, None, ..., None])
    assert told(circuit({"path_patching": [paths], "patching": [heads]})) == {("L0H1", "L1H1")}


@pytest.mark.slow
def test_the_drawing_is_well_formed_and_says_every_arrow_in_words(drawn):
    text = svg(drawn)
    words = {title.text for title in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}title")}
    assert len(words) == len(drawn.arrows)
    assert {"L0H1 looks at b_k: 100% of its attention", "L1 mlp passes 100% of a carry to s_k"} <= words
    assert drawn._repr_svg_() == text
    assert repr(drawn).splitlines()[-1] == "L1 mlp -> s_k 100%"
    assert len(repr(drawn).splitlines()) == len(drawn.arrows)


@pytest.mark.slow
def test_every_box_of_the_drawing_is_inside_of_it_and_none_is_on_another(drawn):
    drawn = diagram(drawn)
    places = [(box.x, box.y) for box in drawn.boxes]
    assert len(set(places)) == len(places)
    for x, y in places:
        assert 0 <= x <= drawn.width - drawn.box_width
        assert 0 <= y <= drawn.height - drawn.box_height
    for (x, y), (other_x, other_y) in ((one, other) for one in places for other in places if one != other):
        assert abs(x - other_x) >= drawn.box_width or abs(y - other_y) >= drawn.box_height


@given(kind=st.sampled_from(["head", "mlp", "pre", "mid", "post"]), layer=st.integers(0, 99), head=st.integers(0, 99))
def test_a_component_is_found_again_by_its_name(kind, layer, head):
    part = Component(kind, layer, head if kind == "head" else 0)
    assert Component.named(str(part)) == part


@pytest.mark.parametrize("name", ["", "L1", "logits", "L0H1.x", "l0h1", "L0 attn"])
def test_other_names_name_no_component(name):
    with pytest.raises(TaskError, match="names no head"):
        Component.named(name)
