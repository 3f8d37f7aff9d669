import importlib
import shutil
from pathlib import Path

import pytest

from lab.models import sources

script = importlib.import_module("experiments.reach-law.run")
GRID = script.GRID
LONGEST = script.LONGEST
WHOLE = script.WHOLE
first_failure = script.first_failure
measured = script.measured


@pytest.mark.parametrize("trained", [5, 10])
@pytest.mark.parametrize("last", [5, 10, 11, 17, 36, 99, 240, 600])
def test_the_first_length_that_fails_is_found_to_a_tenth(trained, last):
    if last < trained:
        return
    found = first_failure(lambda digits: float(digits <= last), trained)
    assert last / 1.1 <= found <= max(1.1 * last, last + 1)


def test_a_model_that_fails_early_and_recovers_has_failed_and_one_that_never_fails_reaches_the_end():
    assert 11 <= first_failure(lambda digits: float(not 12 <= digits <= 15), 10) <= 12
    assert first_failure(lambda digits: 0.5, 10) == LONGEST
    asked: list[int] = []
    first_failure(lambda digits: asked.append(digits) or 1.0, 10)  # type: ignore[func-returns-value]
    assert asked == [*(round(10 * factor) for factor in GRID), LONGEST]


@pytest.mark.slow
def test_the_reach_of_an_adder_with_rope_is_told_from_sums_of_ten_digits(tmp_path):
    run = tmp_path / "far_rope_0"
    shutil.copytree(Path(sources.resolve("zoo/adds-10-rope")), run)
    law = measured(run, 16)
    assert law is not None
    assert (law.name, law.kind, law.trained) == ("rope_0", "rope", 10)
    assert law.reach < 20
    assert law.predicted[WHOLE] == pytest.approx(law.reach, rel=0.3)
    assert law.predicted["more digits alone"] > 2 * law.reach
    assert law.predicted["farther signs alone"] == LONGEST
