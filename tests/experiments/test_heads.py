import pytest

from experiments.shared.heads import random_groups
from lab.errors import ModelError
from lab.probing.components import Component
from tests.probing.known_adders import llama_adder, native_adder


@pytest.mark.parametrize("make", [native_adder, llama_adder])
def test_random_groups_are_other_heads_of_the_same_layers(make):
    adder = make()
    group = (Component("head", 0, 1), Component("head", 0, 2), Component("head", 1, 0))
    found = random_groups(adder, group, 5)
    assert len(set(found)) == 5
    for one in found:
        assert [component.layer for component in one] == [0, 0, 1]
        assert not set(one) & set(group)
    with pytest.raises(ModelError, match="no heads beside L0 mlp"):
        random_groups(adder, (Component("mlp", 0),), 1)
