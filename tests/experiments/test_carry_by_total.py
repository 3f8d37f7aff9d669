import pytest

from experiments.shared.carry_by_total import DECIDES, HALF_WAY, STREAM, TOTALS, by_total, right_digits, totals_table
from experiments.smollm2_chains import draw_totals
from tests.probing.known_adders import ADDERS, native_adder


@pytest.mark.parametrize("name", ADDERS)
def test_an_adder_by_hand_carries_in_a_step_at_ten_or_at_nine_if_the_ones_carry(name):
    curves = by_total(ADDERS[name]())
    for carry in ("0", "1"):
        steps = [round(curves[STREAM][carry][str(total)][0], 1) for total in TOTALS]
        assert steps == [float(total + int(carry) >= 10) for total in TOTALS]
        assert all(curves[HALF_WAY][carry][str(total)][0] == 0 for total in TOTALS)


def test_a_head_that_brings_the_digits_turns_the_answer_and_an_idle_head_does_not():
    adder = native_adder()
    (layer, head), (idle_layer, idle_head) = adder.known.carry_heads[0], adder.known.idle_heads[0]
    carrying, idle = f"L{layer}H{head}", f"L{idle_layer}H{idle_head}"
    curves = by_total(adder, [carrying, idle])
    by_part = {part: [points["0"][str(total)][0] for total in TOTALS] for part, points in curves.items()}
    assert list(by_part) == [carrying, idle, STREAM, HALF_WAY]
    # half of the pairs have a carry, and the other head still brings the base's digit of the sum
    assert by_part[carrying][0] == pytest.approx(0.5, abs=0.01)
    assert by_part[carrying][-1] == pytest.approx(1, abs=0.01)
    assert by_part[idle] == pytest.approx([0.5] * len(TOTALS), abs=0.01)


def test_digits_that_the_tens_or_the_ones_decide_about_are_all_right_in_an_adder_by_hand():
    for pairs in DECIDES.values():
        assert right_digits(native_adder(), pairs(20, 2)) == {"without": [20, 20], "with": [20, 20]}


def test_curves_are_shown_as_a_table_and_a_figure(tmp_path):
    curves = {"by hand": by_total(native_adder())}
    rows = totals_table("How far", "model", curves).rows
    assert [row[:3] for row in rows] == [("by hand", part, carry) for part in (STREAM, HALF_WAY) for carry in "01"]
    draw_totals(curves, "How far", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 5_000
