"""Groups, on adders in which no single head turns a carry off."""

import numpy as np
import pytest

from lab.errors import TaskError
from lab.probing.addition.pairs import carry_only
from lab.probing.benchmark.families import ones_first
from lab.probing.components import Component
from lab.probing.instruments import groups, patching
from tests.probing.known_adders import native_adder


def test_a_group_is_found_whose_members_alone_do_nothing_in_one_direction():
    adder = native_adder()
    carry = tuple(sorted(Component("head", *place) for place in adder.known.carry_heads))
    found = groups.find(adder, carry_only(4, 1, 16, seed=0))
    assert found == carry
    measured = groups.measure(adder, carry_only(4, 1, 16, seed=1), found)
    np.testing.assert_allclose(measured.at(patched="the group").value, [1, 1], atol=0.02)
    off = measured.at(carry="1 to 0")
    for one in found:
        assert off.at(patched=f"{one} alone").value < 0.3
        assert off.at(patched=f"without {one}").value < 0.3


def test_of_three_redundant_heads_single_patches_see_none_and_the_search_finds_enough():
    adder = ones_first.adder("backup", ones_first.Design(sharp=True, backup=True), 0)
    pairs = carry_only(4, 1, 24, seed=0)
    found = groups.find(adder, pairs)
    assert {(one.layer, one.head) for one in found} <= set(adder.known.carry_heads)
    assert len(found) >= 2
    alone = patching.patch_heads(adder, pairs).effect.at(place="everywhere", carry="1 to 0").value
    assert max(alone[one.layer, one.head] for one in found) < 0.8
    whole = groups.measure(adder, pairs, found).at(patched="the group").value
    assert whole.mean() > 0.9


def test_what_is_no_group_is_refused_in_one_line():
    adder, pairs = native_adder(), carry_only(4, 1, 8, seed=0)
    with pytest.raises(TaskError, match=r"^all candidates together have 0 % of the effect"):
        groups.find(adder, pairs, [Component("head", *adder.known.decoy)])
    with pytest.raises(TaskError, match="empty group"):
        groups.measure(adder, pairs, ())
