"""What a script may get wrong when it calls the instruments: each mistake is told in one line."""

from functools import cache

import numpy as np
import pytest

from lab.errors import LabError
from lab.probing.addition import alignment, head_contents, helix, heuristics, interchange, probes, surgery
from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.instruments import attribution, edges, patching, path_patching
from lab.probing.interventions import residual
from tests.probing.known_adders import native_adder

HEAD, MLP, MISSING = Component("head", 0, 0), Component("mlp", 0), Component("head", 0, 99)


@cache
def subject():
    return native_adder()


@cache
def sums():
    return subject().sums([(a, b) for a in range(1000, 9999, 1037) for b in range(1000, 9999, 2041)])


def pairs():
    return carry_only(4, 1, 8, 0)


def patched(components, labels):
    return patching.patch(subject(), pairs(), [patching.Patch(components, "everywhere")], "effect", {"patch": labels})


MISTAKES = {
    "no sums": (lambda: subject().sums([]), "no sums to ask"),
    "a negative number": (lambda: subject().sums([(-5, 3)]), "(-5, 3): should be two whole numbers"),
    "half a number": (lambda: subject().sums([(1.5, 3)]), "(1.5, 3): should be two whole numbers"),
    "no pairs": (lambda: patching.patch_heads(subject(), Pairs([], [], 1)), "no sums to ask"),
    "nothing to patch": (lambda: patching.patch_heads(subject(), pairs(), []), "nothing to patch"),
    "a patch of nothing": (lambda: patched((), ["nothing"]), "nothing to patch"),
    "labels for other patches": (lambda: patched((HEAD,), ["one", "two"]), "1 patches, but the labels"),
    "no receivers": (lambda: path_patching.patch_paths(subject(), pairs(), [HEAD], []), "no paths"),
    "batches of nothing": (lambda: batches(5, 0), "batch_size=0"),
    "scores of another model": (lambda: edges.curve(subject(), pairs(), np.zeros((2, 2))), "scores of shape (2, 2)"),
    "no training pairs": (
        lambda: interchange.interchange_all(subject(), 4, columns=[2], train_pairs=0, test_pairs=4),
        "no sums to ask",
    ),
    "contents of an MLP": (lambda: head_contents.contents(subject(), [MLP], [2], sums(), sums()), "should be a head"),
    "contents of no head": (lambda: head_contents.contents(subject(), [MISSING], [2], sums(), sums()), "has no L0H99"),
    "contents of no column": (lambda: head_contents.contents(subject(), [HEAD], [9], sums(), sums()), "column 9"),
    "probes of no column": (lambda: probes.probe(subject(), sums(), columns=[9]), "column 9: these sums have 5"),
    "helix of no column": (lambda: helix.helix(subject(), sums(), sums(), 9), "column 9"),
    "neurons of no column": (lambda: heuristics.heuristics(subject(), sums(), 9), "column 9"),
    "no neurons": (lambda: heuristics.heuristics(subject(), sums(), 2, top=0), "top=0"),
    "alignment at no length": (lambda: alignment.alignment(subject(), {}), "length: give at least one"),
    "attention at no length": (lambda: alignment.destinations(subject(), {}), "length: give at least one"),
    "no exact effects": (lambda: attribution.screen(subject(), pairs(), top=0), "top=0"),
    "a head of no layer": (
        lambda: surgery.surgery(subject(), {4: sums()}, [alignment.Aligned(9, 0, "a", 0)]),
        "has no L9H0",
    ),
    "a third number": (lambda: alignment.target_at(sums(), "c", 0), "number 'c'"),
    "a stream of no layer": (
        lambda: subject().logits(sums(), residual(9, "pre", lambda stream: stream)),
        "no hook point blocks.9.hook_resid_pre",
    ),
    "a name of no component": (lambda: Component.named("L2 H0"), "'L2 H0' names no head"),
    "a name instead of a bridge": (lambda: Subject.from_bridge("gpt2"), "str 'gpt2': should be a TransformerBridge"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_a_caller_is_told_in_one_line(mistake):
    call, said = MISTAKES[mistake]
    with pytest.raises(LabError) as raised:
        call()
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
