"""Steering, on an adder whose carry is a direction: the vector of a carry turns the next digit, a random one does
not."""

from lab.probing.addition.pairs import carry_only
from lab.probing.instruments.steering import adding, steer, vector
from tests.probing.known_adders import native_adder


def test_the_vector_of_a_carry_turns_it_on_after_the_layer_that_finds_it():
    adder = native_adder()
    found = steer(adder, carry_only(4, 1, 24, seed=0), [0])
    at = found.at(layer=0)
    assert at.at(strength=0.0, vector="steering").value == 0
    assert at.at(strength=1.0, vector="steering").value > 0.9
    assert at.at(strength=1.0, vector="random").value < 0.3


def test_hooks_add_the_vector_at_every_token():
    adder = native_adder()
    pairs = carry_only(4, 1, 4, seed=0)
    sums, name = adder.sums(pairs.base), "blocks.0.hook_resid_post"
    v = vector(adder, pairs, 0, place="q_k")
    _, before = adder.activations(sums, [name])
    _, after = adder.activations(sums, [name], adding(0, v, 2.0))
    assert ((after[name] - before[name]) - 2 * v).abs().max() < 1e-4
