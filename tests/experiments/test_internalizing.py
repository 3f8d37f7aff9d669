"""When traces lose their lines, and how many."""

import math
from collections import Counter

import pytest

from experiments.shared.internalizing import Removal, ShorterTraces, internalizing
from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.numbers.sampling import Problem
from lab.pretrain import pretrain
from lab.runs import Run
from lab.shipped import shipped_configs

STAGES = Removal(4, stages=3, whole=10, every=5, lines=2)


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


def test_only_samples_of_a_training_lack_lines_and_the_answer_always_remains():
    config = load(PretrainConfig, shipped_configs()["rules_internalize"])
    lacking, whole = ShorterTraces.of(config, lambda index: index), ShorterTraces.of(config, lambda index: 0)
    item = Problem("add", "integer", "28", "5", "33", 2)
    assert [" ".join(lacking.answer(item, index)) for index in (0, 1, 2, 9)] == [
        '8 5 3 1 ; 2 "" 3 0 ; answer is 3 3',
        '2 "" 3 0 ; answer is 3 3',
        "answer is 3 3",
        "answer is 3 3",
    ]
    assert lacking.answer(item) == whole.answer(item, 5)


@pytest.mark.slow
def test_a_model_is_measured_with_its_tokens_while_its_traces_lose_their_lines(tmp_path):
    small = ["model={size: 0.2M, layers: 1, device: cpu}", "data.lengths=[1, 3]", f"output={tmp_path}"]
    short = ["training={max_steps: 4, batch_size: 4, micro_batch_size: 4, warmup_steps: 1, log_every: 1}"]
    tested = ["evaluation={lengths: [4], problems_per_length: 2, while_training: [4], problems_while_training: 2}"]
    validated = ["training={evaluate_every: 2, valid_problems: 4}"]
    words = [*small, *short, *tested, *validated]
    config = load(PretrainConfig, shipped_configs()["rules_internalize"], words)
    pretrain(config, internalizing(config, Removal(4, stages=1, whole=2, every=1)))
    points = Run(config.path).read("curve")
    assert {(row["step"], row["length"]) for row in points} == {(2, 4), (4, 4)}
    assert all(row["tokens"] > 0 for row in points)
