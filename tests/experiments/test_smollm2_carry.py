import numpy as np

from experiments.shared.sums import drawn
from experiments.smollm2_carry import digits_told
from lab.probing.addition.head_contents import contents
from lab.probing.components import Component
from tests.probing.known_adders import tricase_adder

COLUMN = 2


def test_the_digit_follows_the_carry_that_its_head_is_told():
    adder = tricase_adder(5)
    head = Component("head", *adder.known.carry_heads[1])
    seen = contents(adder, [head], [COLUMN], drawn(adder, 4, 0, 200), drawn(adder, 4, 200, 100))
    direction, sums = seen.directions[head, COLUMN], drawn(adder, 4, 500, 100)
    carry, digit = sums.columns.carry[:, COLUMN], sums.columns.sum[:, COLUMN]
    assert (digits_told(adder, sums, COLUMN, head, direction, carry) == digit).all()
    wrong = (digit + np.where(carry == 1, -1, 1)) % 10
    assert (digits_told(adder, sums, COLUMN, head, direction, 1 - carry) == wrong).mean() > 0.95
