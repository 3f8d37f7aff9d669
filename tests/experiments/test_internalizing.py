"""When traces lose their lines, and how many."""

import math
from collections import Counter

import pytest
from pydantic import ValidationError

from lab.config.pretraining import InternalizeConfig, PretrainConfig
from lab.tune.internalizing import Removal

STAGES = Removal(InternalizeConfig(stages=3, whole=10, every=5, lines=2), batch_size=4)


def test_stages_follow_each_other_and_the_last_one_goes_on():
    assert [STAGES.stage(step) for step in (0, 9, 10, 14, 15, 20, 24, 25, 99)] == [0, 0, 1, 1, 2, 3, 3, 3, 3]
    assert [step for step in range(100) if STAGES.begins(step)] == [10, 15, 20]


def test_a_sample_lacks_the_lines_of_its_stage_and_sometimes_more_with_the_chances_of_the_paper():
    extra = Counter(STAGES(index) - 2 * STAGES.stage(index // 4) for index in range(20_000))
    assert min(extra) == 0
    # chances proportional to exp(-4 o): 1 - exp(-4) for none, and each one more exp(-4) times rarer
    assert extra[0] / 20_000 == pytest.approx(1 - math.exp(-4), abs=0.003)
    assert extra[1] / 20_000 == pytest.approx(math.exp(-4) * (1 - math.exp(-4)), abs=0.003)
    assert STAGES(0) == STAGES(0)


@pytest.mark.parametrize("data", [{}, {"style": "rule_following", "rules": {"detail": "answer"}}])
def test_lines_can_only_be_removed_from_traces(data):
    with pytest.raises(ValidationError, match=r"training\.internalize needs data\.style=rule_following"):
        PretrainConfig(name="x", data=data, training={"internalize": {"stages": 1}})  # type: ignore[arg-type]
