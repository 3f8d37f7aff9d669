"""Runs of all kinds side by side."""

import json
from itertools import combinations_with_replacement

import pytest

from lab.benchmarks.nupa.problems import pick_problems
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.results import VERSION, Reading, Sample, Scores, Summary
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import CarryFreeConfig, TwoIntegersConfig
from lab.engines.engine import Completion
from lab.evaluate import main
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.runs import Run


def summary_of(benchmark):
    """The summary of a model whose every answer is 7."""
    answer = Completion("7", 1, 1, 0.1, "stop")
    asked = range(len(benchmark))
    return benchmark.summarize(
        [Sample(i, benchmark.problems[i], "", answer, *benchmark.score(i, answer)) for i in asked]
    )


def curves(task: str, *lengths: int) -> dict:
    scores = Scores.of([Reading("3", True, 1.0, 0)])
    return {f"{task}_integer": dict.fromkeys(lengths, scores)}


def written(**parts) -> dict:
    return Summary(version=VERSION, **parts).to_json()


NUPA = summary_of(Nupa(pick_problems([Cell(TASKS["add_integer"], 5)], 0, 2)))
SCRATCH = "model: {size: 0.2M, encoding: rope}\ntokenizer: {kind: aligned}\ndata: {lengths: [1, 4]}\nevaluation: {}\n"
ENGINE = "engine: {kind: local, model: {name: toy}}\n"

COMPARED = {
    "nupa": (f"{ENGINE}benchmark: {{kind: nupa}}\n", written(nupa=NUPA)),
    "finetune": ("model: {name: toy}\nadapter: {}\nevaluation: {}\n", written(before=NUPA, after=NUPA)),
    "scratch": (SCRATCH, written(lengths=curves("add", 4, 5))),
    "scratch_longer": (SCRATCH, written(lengths=curves("max", 5, 50))),
    "two_integers": (
        f"{ENGINE}benchmark: {{kind: two_integers}}\n",
        written(two_integers=summary_of(TwoIntegers(TwoIntegersConfig(problems=2), 0))),
    ),
    "carry_free": (
        f"{ENGINE}benchmark: {{kind: carry_free}}\n",
        written(carry_free=summary_of(CarryFree(CarryFreeConfig(lengths=(2, 3), problems_per_length=1), 0))),
    ),
}
REFUSED = {
    "cost": ("rule_following: {}\n", {"direct": {}, "rule_following": {}, "ratios": {}}),
    "probe": ("subject: toy\n", None),
    "sweep": ("command: pretrain\n", None),
}


@pytest.fixture
def written(tmp_path):
    def write(kind: str) -> str:
        config, summary = {**COMPARED, **REFUSED}[kind]
        path = tmp_path / kind
        if not path.exists():
            with Run.open(path, f"name: {kind}\n{config}") as run:
                if summary is not None:
                    run.write_json("summary", {"version": VERSION, **summary})
        return str(path)

    return write


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), combinations_with_replacement(COMPARED, 2))
def test_runs_of_any_two_kinds_are_shown_with_what_was_measured_of_each(written, tmp_path, capsys, one, other):
    main([written(one), written(other), f"out={tmp_path / 'out'}"])
    printed = capsys.readouterr().out
    assert "What was measured" in printed
    for kind in (one, other):
        assert kind in printed
    assert list((tmp_path / "out").rglob("*.csv"))
    assert list((tmp_path / "out").rglob("*.png"))


@pytest.mark.slow
def test_models_from_scratch_stand_side_by_side_at_every_length(written, tmp_path, capsys):
    main([written("scratch"), written("scratch_longer"), f"out={tmp_path / 'out'}"])
    printed = capsys.readouterr().out
    assert "0.2M rope" in printed
    assert "trained on digits [1, 4]" in printed
    table = (tmp_path / "out" / "tables" / "exact_match.md").read_text()
    assert "| task | model | d4 | d5 | d50 |" in table
    assert "| add_integer | scratch | 100 (21-100) | 100 (21-100) |  |" in table
    assert "| max_integer | scratch_longer |  | 100 (21-100) | 100 (21-100) |" in table


@pytest.mark.parametrize("kind", [*REFUSED, "adder", "old", "running", "torn", "unreadable"])
def test_what_cannot_be_laid_beside_others_is_refused_in_one_line(written, tmp_path, capsys, kind):
    path = tmp_path / kind
    if kind in REFUSED:
        written(kind)
    else:
        with Run.open(path, f"name: {kind}\n{SCRATCH}") as run:
            version = {} if kind == "adder" else {"version": 0 if kind == "old" else VERSION}
            figures = {"parameters": 6} if kind == "adder" else Summary(lengths=curves("add", 4)).to_json()
            run.write_json("summary", version | figures)
        if kind == "running":
            (path / "status").write_text("running\n")
        if kind == "torn":
            (path / "summary.json").write_text(json.dumps({"lengths": {}})[:7])
        if kind == "unreadable":
            (path / "config.yaml").write_bytes(b"a: [\xff")
    for others in ([], ["nupa"], ["scratch"]):
        with pytest.raises(SystemExit) as stopped:
            main([*map(written, others), str(path)])
        assert stopped.value.code == 2
        told = capsys.readouterr().err
        assert str(path) in told
        assert len(told.strip().splitlines()) == 1
