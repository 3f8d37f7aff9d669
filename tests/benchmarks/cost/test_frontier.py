"""Accuracy against cost, from finished runs of several commands."""

import json

import pytest
import yaml

from lab.benchmarks.cost.frontier import GROUPS, Point, points, ways
from lab.benchmarks.results import Reading, Sample
from lab.cost import main
from lab.engines.engine import Completion
from lab.errors import RunError
from lab.numbers.sampling import Problem

LENGTHS = {"hard": [1, 3], "easy": [5, 6]}


def sample(a: str, right: bool, seconds: float, tokens: tuple[int, int], api_error: str = "") -> dict:
    question = Problem("add", "integer", a, "1", str(int(a) + 1), len(a))
    readings = {} if api_error else {"strict": Reading(question.answer, right, float(right), 0)}
    return Sample(0, question, "", Completion("", *tokens, seconds, "stop", "", api_error), readings).to_json()


@pytest.fixture
def run(tmp_path):
    def write(name: str, config: dict, status: str = "finished", **files: list[dict]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(yaml.safe_dump({"name": name, **config}))
        (tmp_path / name / "status").write_text(f"{status}\n")
        for stem, samples in files.items():
            (tmp_path / name / f"{stem}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in samples))
        return tmp_path / name

    return write


@pytest.fixture
def both(run):
    """A tuned model that answers directly, and a test of one that follows rules."""
    direct = [sample("123", True, 1, (20, 4)), sample("124", False, 1, (20, 4)), sample("12345", False, 1, (22, 6))]
    traced = [sample("123", True, 4, (90, 30)), sample("124", True, 6, (90, 34)), sample("12345", True, 9, (90, 50))]
    tuned = {"model": {"name": "x"}, "data": {"style": "direct", "lengths": LENGTHS}, "evaluation": {}}
    run("rules", {"data": {"style": "rule_following", "lengths": LENGTHS}})
    asked = {
        "engine": {"kind": "local", "model": {"name": "elsewhere/rules"}, "speculation": 4},
        "benchmark": {"setting": "rule_following", "rules": {"detail": "values"}},
    }
    more = [sample("999", False, 1, (1, 1)), sample("998", True, 1, (1, 1), api_error="no answer")]
    return [
        run("direct", tuned, samples_before=more, samples_after=[*direct, *more]),
        run("test", asked, samples=traced),
    ]


def costs(point: Point) -> tuple[float, ...]:
    found = point.per_right["seconds"], point.per_right["completion_tokens"]
    return tuple(estimate.value for estimate in found if estimate)


def test_costs_are_those_worked_out_by_hand_on_the_problems_that_all_were_asked(both):
    found = {(row.task, row.way.label, row.lengths): row for row in points(ways(both))}
    assert len(found) == 8
    inside = found["all tasks", "direct", GROUPS[0]]
    assert (inside.accuracy.n, inside.accuracy.value) == (2, 0.5)
    assert costs(inside) == (2, 8)
    assert (inside.way.detail, inside.way.engine) == ("direct", "shared prompt")
    assert found["all tasks", "direct", GROUPS[1]].per_right["seconds"] is None
    traced = found["add_integer", "test", GROUPS[0]]
    assert (traced.way.detail, traced.way.engine) == ("values", "drafts")
    assert costs(traced) == (5, 32)
    assert traced.spent["prompt_tokens"].value == 90
    assert costs(found["all tasks", "test", GROUPS[1]]) == (9, 50)


def test_models_from_scratch_have_the_same_lengths_for_all_tasks_and_are_asked_in_the_plain_loop(run):
    config = {"tokenizer": {}, "data": {"style": "rule_following", "rules": {"detail": "bare"}, "lengths": [1, 4]}}
    found = ways([run("small", config, samples=[sample("123", True, 1, (9, 20)), sample("12345", True, 1, (9, 30))])])
    assert [(way.detail, way.engine) for way in found] == [("bare", "plain loop")]
    assert {row.lengths for row in points(found)} == set(GROUPS)


def test_each_variant_of_a_cost_comparison_is_a_way_of_its_own(run):
    one = [sample("123", True, 1, (20, 4))]
    config = {"direct": {"name": "x"}, "rule_following": {"name": "y"}, "rules": {"detail": "state"}}
    names = ("direct", "direct_plain_loop", "rule_following_speculation", "rule_following_shared_prefix")
    place = run("compared", config, **{f"samples_{name}": one for name in names})
    assert [(way.label, way.detail, way.engine) for way in ways([place])] == [
        ("compared, direct", "direct", "shared prompt"),
        ("compared, direct plain loop", "direct", "plain loop"),
        ("compared, rule following shared prefix", "state", "shared prompt"),
        ("compared, rule following speculation", "state", "drafts"),
    ]
    assert {row.lengths for row in points(ways([place]))} == {"all lengths"}


@pytest.mark.slow
def test_the_command_writes_a_table_its_records_and_a_figure(both, tmp_path, capsys):
    main([*map(str, both), f"out={tmp_path / 'out'}"])
    assert "tokens written per right answer" in (tmp_path / "out" / "frontier.md").read_text()
    assert (tmp_path / "out" / "frontier.csv").read_text().count("\n") == 9
    assert (tmp_path / "out" / "frontier.png").stat().st_size > 10_000
    assert "What right answers cost" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "samples", "why"),
    [
        ("running", [], "open: not a finished run"),
        ("finished", [sample("777", True, 1, (1, 1))], "no problem was answered in all of them"),
        ("finished", [], "open: no samples of NUPA"),
    ],
)
def test_runs_that_cannot_be_compared_are_one_clear_line(run, both, capsys, tmp_path, status, samples, why):
    place = run("open", {"engine": {"kind": "openai", "model": "m"}}, status, samples=samples)
    with pytest.raises(SystemExit) as stopped:
        main([*map(str, both), str(place), f"out={tmp_path / 'out'}"])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_no_runs_at_all_are_one_clear_line():
    with pytest.raises(RunError, match="no runs to compare"):
        ways([])
