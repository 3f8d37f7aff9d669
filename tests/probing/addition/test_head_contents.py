"""The instrument tells heads that hold the carry from heads that fetch digits, in adders whose heads are known."""

import numpy as np
import pytest

from lab.probing.addition.head_contents import EVERY_TOKEN, contents, exchange
from lab.probing.addition.pairs import cross_digit, operands
from lab.probing.benchmark.running import ADDERS
from lab.probing.components import Component
from lab.probing.instruments.patching import patch_heads

COLUMN = 2


def looked(name):
    adder = ADDERS[name](5)
    heads = [Component("head", *head) for head in adder.known.carry_heads]
    pairs = operands("uniform", 4, 0, 500)
    return adder, heads, contents(adder, heads, [COLUMN], adder.sums(pairs[:200]), adder.sums(pairs[200:]))


@pytest.mark.parametrize("name", ["ones first", "ones first, superposed"])
def test_heads_that_fetch_digits_are_told_by_the_digit_that_they_fetch(name):
    adder, heads, found = looked(name)
    for head in heads:
        operand = adder.known.looks_at[head.layer, head.head][0]
        other = {"a": "b", "b": "a"}[operand]
        shares = found.explained.at(head=str(head), column=COLUMN)
        assert shares.at(reading=f"{operand}'s digit").value == pytest.approx(1, abs=1e-3)
        assert shares.at(reading=f"{other}'s digit").high < 0.1
        assert shares.at(reading="carry").high < 0.6


def test_a_head_that_holds_the_carry_is_a_step_and_follows_the_chain_through_nines():
    _, heads, found = looked("ones first, fetched carry")
    best = max(heads, key=lambda head: found.explained.at(head=str(head), column=COLUMN, reading="carry").value)
    shares = found.explained.at(head=str(best), column=COLUMN)
    assert shares.at(reading="carry").value > 0.98
    assert shares.at(reading="straight line").high < 0.8
    steps = found.steps.at(head=str(best), column=COLUMN)
    assert steps.at(carry=0, sum=9).value == pytest.approx(0, abs=0.1)
    assert steps.at(carry=1, sum=9).value == pytest.approx(1, abs=0.1)
    assert steps.at(carry=0, sum=8).value == pytest.approx(0, abs=0.1)


def test_the_direction_alone_does_what_the_head_does_if_it_holds_the_carry():
    adder, heads, found = looked("ones first, fetched carry")
    best = max(heads, key=lambda head: found.explained.at(head=str(head), column=COLUMN, reading="carry").value)
    direction = found.directions[best, COLUMN]
    effect = exchange(adder, cross_digit(4, COLUMN, 16, seed=3), {best: direction}).effect.at(head=str(best))
    np.testing.assert_allclose(
        effect.at(part="its carry direction").value, effect.at(part="all of it").value, atol=0.05
    )
    np.testing.assert_allclose(effect.at(part="the rest").value, 0, atol=0.05)


def test_a_head_at_every_token_has_the_effect_that_patching_it_has():
    adder, heads, found = looked("ones first, fetched carry")
    pairs = cross_digit(4, COLUMN, 16, seed=3)
    directions = {head: found.directions[head, COLUMN] for head in heads}
    patched = patch_heads(adder, pairs).effect.at(place="everywhere")
    exchanged = exchange(adder, pairs, directions).effect
    for head in heads:
        alike = exchanged.at(head=str(head), part=EVERY_TOKEN), patched.at(layer=head.layer, head=head.head)
        np.testing.assert_allclose(alike[0].value, alike[1].value, atol=1e-4)
        np.testing.assert_allclose(alike[0].low, alike[1].low, atol=1e-4)


def test_what_a_held_carry_adds_to_a_line_in_both_digits_is_seen_by_nested_models():
    adder, heads, found = looked("ones first, fetched carry")
    best = max(heads, key=lambda head: found.explained.at(head=str(head), column=COLUMN, reading="carry").value)
    held = found.nested.at(head=str(best), column=COLUMN)
    assert held.at(model="a and b").high < 0.8
    assert held.at(model="a, b and the carry").value > 0.98
    adder, heads, found = looked("ones first")
    for head in heads:
        operand = adder.known.looks_at[head.layer, head.head][0]
        fetched = found.nested.at(head=str(head), column=COLUMN)
        assert fetched.at(model="a").value == pytest.approx(float(operand == "a"), abs=0.05)
        assert fetched.at(model="a and b").value == pytest.approx(1, abs=1e-3)
        added = fetched.at(model="a, b and the carry").value - fetched.at(model="a and b").value
        assert added == pytest.approx(0, abs=1e-3)
