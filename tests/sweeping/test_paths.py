"""Paths to values: what a run will contain is known before it starts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.benchmarks.nupa.problems import pick_problems
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.results import VERSION, Reading, Sample, Scores, Summary
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import CarryFreeConfig, TwoIntegersConfig
from lab.config.loading import load
from lab.config.schema import RunConfig
from lab.errors import ConfigError
from lab.inference.engine import Completion
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.sweeping.config import COMMANDS, ValuesResults
from lab.sweeping.paths import check_paths, is_estimate

CONFIGS = Path(__file__).parents[2] / "configs"


def config_of(command: str, name: str, *overrides: str) -> RunConfig:
    return load(COMMANDS[command].schema, CONFIGS / f"{name}.yaml", overrides)


def summary_of(benchmark):
    """The summary of a model whose every answer is 7."""
    answer, asked = Completion("7", 1, 1, 0.1, "stop"), range(len(benchmark))
    samples = [Sample(i, benchmark.problems[i], "", answer, *benchmark.score(i, answer)) for i in asked]
    return benchmark.summarize(samples)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """The path of every estimate and of every number in a summary, and whether it is an estimate."""
    if is_estimate(tree):
        yield path, True
    elif isinstance(tree, int | float):
        yield path, False
    else:
        for key, below in enumerate(tree) if isinstance(tree, list) else (tree or {}).items():
            yield from leaves(below, f"{path}.{key}".strip("."))


NUPA = summary_of(Nupa(pick_problems([Cell(TASKS["add_integer"], n) for n in (3, 12, 20)], 0, 2)))
CURVES = {"add_integer": dict.fromkeys((4, 5), Scores.of([Reading("3", True, 1.0, 0)]))}
SUMS = {
    "two_integers": summary_of(TwoIntegers(TwoIntegersConfig(problems=2), 0)),
    "carry_free": summary_of(CarryFree(CarryFreeConfig(lengths=(2, 3), problems_per_length=1), 0)),
}


@pytest.mark.parametrize(
    ("config", "summary"),
    [
        (config_of("finetune", "smollm2_lora"), Summary(before=NUPA, after=NUPA)),
        (config_of("pretrain", "scratch_add"), Summary(lengths=CURVES)),
        (config_of("evaluate", "nupa_smollm2"), Summary(nupa=NUPA)),
        (config_of("evaluate", "two_integers"), Summary(two_integers=SUMS["two_integers"])),
        (config_of("evaluate", "carry_free"), Summary(carry_free=SUMS["carry_free"])),
    ],
    ids=["finetune", "pretrain", "nupa", "two_integers", "carry_free"],
)
def test_every_figure_of_a_summary_may_be_named_before_the_run(config, summary):
    found = dict(leaves(summary.to_json()))
    found.pop("version", VERSION)
    assert len(found) > 5
    for path, is_share in found.items():
        named = {"figure": path}
        check_paths(ValuesResults(shares=named) if is_share else ValuesResults(means=named), config)


@pytest.mark.parametrize(
    ("config", "path", "message"),
    [
        ("smollm2_lora", "after.add_integer.range.S.strict.exact_match", "after.add_integer has ranges, domains, "),
        ("smollm2_lora", "after.*.ranges.T.strict.exact_match", "after.*.ranges has S, M, L, XL"),
        ("smollm2_lora", "after.add_intger.ranges.S.strict.exact_match", "after has "),
        ("smollm2_lora", "after.*.ranges.S.exact_match", "after.*.ranges.S has lengths, asked, api_errors, strict"),
        ("smollm2_lora", "after.*.ranges.S.strict", "after.*.ranges.S.strict has exact_match, digit_match, dlength"),
        ("smollm2_lora", "after.*.ranges.S.asked", "there is no proportion with its n at after.*.ranges.S.asked"),
        ("smollm2_lora", "nupa.*.ranges.S.strict.exact_match", "the file has before, after"),
        ("scratch_add", "lengths.max_integer.4.exact_match", "lengths has add_integer"),
        ("scratch_add", "lengths.add_integer.400.exact_match", "lengths.add_integer has "),
        ("two_integers", "two_integers.success_rates.strict", "two_integers has asked, answered, "),
        ("cot_vs_direct", "ratio.direct.overall", "the file has version, left_out, direct, rule_following, ratios"),
        ("adder_tiny", "right", "the file has parameters, accuracy, loss, seed, step, exact_match"),
        ("probe_scratch", "probe_alinment:0.value.3", "lab probe does not write probe_alinment.json"),
        ("scratch_add", "sumary:lengths", "does not write sumary.json, but summary, environment"),
    ],
)
def test_a_path_that_no_run_can_have_is_told_with_what_there_will_be(config, path, message):
    commands = {"two_integers": "evaluate", "cot_vs_direct": "cost", "adder_tiny": "adder", "probe_scratch": "probe"}
    command = commands.get(config, "finetune" if "lora" in config else "pretrain")
    with pytest.raises(ConfigError) as raised:
        check_paths(ValuesResults(shares={"figure": path}), config_of(command, config))
    assert message in str(raised.value)
    assert str(raised.value).startswith("results: ")


def test_all_wrong_paths_are_told_at_once_and_right_ones_are_not():
    means = {"a": "exact_match", "b": "loss", "c": "exact_match.n", "d": "lost", "e": "environment:cpu_count"}
    with pytest.raises(ConfigError) as raised:
        check_paths(ValuesResults(shares={"f": "exact"}, means=means), config_of("adder", "adder_tiny"))
    assert [line.partition(";")[0] for line in str(raised.value).splitlines()] == [
        "results: there is no proportion with its n at exact",
        "results: there is no figure at lost",
    ]
