"""Every table, every figure and every line of every benchmark, with all, one and none of the questions answered."""

import warnings
from dataclasses import replace

import pytest

from lab.benchmarks import compare
from lab.benchmarks.cost import figures as cost_figures
from lab.benchmarks.cost import frontier
from lab.benchmarks.cost import tables as cost_tables
from lab.benchmarks.cost.scoring import Variant, summarize
from lab.benchmarks.kinds import REPORTS
from lab.benchmarks.length_curves.figures import training_curves
from lab.benchmarks.length_curves.scoring import LengthCurves
from lab.benchmarks.length_curves.tables import table as length_table
from lab.benchmarks.nupa.figures import before_after
from lab.benchmarks.nupa.in_short import changed
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.nupa.tables import change_table, changes, trained_and_beyond
from lab.benchmarks.own_questions import OwnQuestions
from lab.benchmarks.results import Sample, Summary, read_summary
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import CarryFreeConfig, OwnQuestionsConfig, TwoIntegersConfig
from lab.config.pretraining import PretrainConfig
from lab.drawing.figures import by_cell
from lab.engines.engine import Completion
from lab.numbers.sampling import Cell, distinct_problems
from lab.numbers.tasks import TASKS
from lab.runs import Run
from lab.text.scratch_notation import ScratchNotation, notation_of

pytestmark = pytest.mark.slow
FAILED = Completion("", 0, 0, 0.1, "api_error", api_error="500: no GPU left")
HOW_MANY = ["all", "one", "none"]


def problems():
    cells = [Cell(TASKS[key], length) for key in ("add_integer", "max_float") for length in (5, 9)]
    return [item for cell in cells for item in distinct_problems(cell, "test", 0, 2)]


def notation() -> ScratchNotation:
    config = {"name": "x", "model": {}, "data": {"tasks": ["add_integer"], "lengths": [1, 9]}}
    return notation_of(PretrainConfig.model_validate(config))


@pytest.fixture
def benchmarks(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def questions(seed):\n    return [('1 + 1 =', '2'), ('2 + 2 =', '4')]\n")
    adding = [item for item in problems() if item.task == "add"]
    return {
        "nupa": Nupa(problems()),
        "two_integers": TwoIntegers(TwoIntegersConfig(problems=5), 0),
        "carry_free": CarryFree(CarryFreeConfig(problems_per_length=1, lengths=(2, 4)), 0),
        "own_questions": OwnQuestions(OwnQuestionsConfig(file=file), 0),
        "lengths": LengthCurves(adding, notation()),
    }


def answers(benchmark, how_many, text=" 12"):
    """A sample for each question; those that are not answered have an api_error."""
    found = []
    for index, question in enumerate(benchmark.problems):
        came = how_many == "all" or (how_many == "one" and index == 1)
        completion = Completion(text, 9, 3, 0.5, "stop") if came else FAILED
        scored = benchmark.score(index, completion) if came else None
        marks = (scored.readings, scored.remarks) if scored else ({}, {})
        found.append(Sample(index, question, "?", completion, *marks, "model"))
    return found


@pytest.fixture(autouse=True)
def no_warning():
    """Nothing is said about empty legends or means of nothing."""
    with warnings.catch_warnings():
        for kind in (UserWarning, RuntimeWarning):
            warnings.simplefilter("error", kind)
        yield


def pictures(folder):
    return [path for path in folder.rglob("*.png") if path.stat().st_size > 1000]


@pytest.mark.parametrize("how_many", HOW_MANY)
@pytest.mark.parametrize("kind", REPORTS)
@pytest.mark.parametrize("compared", [False, True], ids=["alone", "compared"])
def test_a_benchmark_is_shown(benchmarks, tmp_path, kind, how_many, compared):
    benchmark = benchmarks[kind]
    part = benchmark.summarize(answers(benchmark, how_many))
    summaries = {"a": part, **({"b": benchmark.summarize(answers(benchmark, "all"))} if compared else {})}
    compare.write(kind, summaries, tmp_path / "out", compared)
    lines = compare.in_short(kind, summaries, compared)
    assert lines
    assert all(line.strip() and "\n" not in line and "nan" not in line for line in lines)
    assert all(not line.rstrip().endswith(":") for line in lines)
    if how_many == "none":
        assert any("no question was answered" in line for line in lines)
    assert list((tmp_path / "out" / "tables").glob("*.csv"))
    assert bool(pictures(tmp_path)) == (REPORTS[kind].draw is not None)


@pytest.mark.parametrize("how_many", HOW_MANY)
@pytest.mark.parametrize("kind", REPORTS)
def test_a_summary_is_the_same_after_json(benchmarks, tmp_path, kind, how_many):
    part = benchmarks[kind].summarize(answers(benchmarks[kind], how_many))
    with Run.open(tmp_path / "run", "name: x\n") as run:
        run.write_json("summary", Summary.of(kind, part).to_json())
    assert getattr(read_summary(run), kind) == part


@pytest.mark.parametrize("how_many", HOW_MANY)
def test_a_comparison_before_and_after_is_shown(benchmarks, tmp_path, how_many):
    benchmark = benchmarks["nupa"]
    rows = changes(answers(benchmark, "all"), answers(benchmark, how_many))
    assert change_table(rows, "t").page()
    assert trained_and_beyond(rows, "t").page()
    assert changed(rows)
    before_after(rows, "t", tmp_path / "change.png")
    assert pictures(tmp_path)


@pytest.mark.parametrize("how_many", HOW_MANY)
def test_curves_are_shown(benchmarks, tmp_path, how_many):
    curves = benchmarks["lengths"].summarize(answers(benchmarks["lengths"], how_many))
    assert length_table({"a": curves, "b": {}}, "t").page()
    during = {task: {length: {64: scores} for length, scores in found.items()} for task, found in curves.items()}
    training_curves(during, "t", tmp_path / "training.png")
    training_curves({}, "t", tmp_path / "nothing.png")
    assert len(pictures(tmp_path)) == 2


@pytest.mark.parametrize("direct", HOW_MANY)
@pytest.mark.parametrize("following", HOW_MANY)
def test_costs_are_shown(benchmarks, tmp_path, direct, following):
    def variant(how_many):
        samples = answers(benchmarks["nupa"], how_many)
        return Variant(2, 100, 8, samples, [{"row_passes": 9, "written": 12}] if how_many != "none" else [])

    summary = summarize({"direct": variant(direct)}, {"rules": variant(following)}, {})
    assert summary.model_validate(summary.to_json()) == summary
    for table in cost_tables.all_tables(summary).values():
        assert table.page()
        assert table.csv()
    lines = cost_tables.in_short(summary)
    assert all("nan" not in line for line in lines)
    cost_figures.cost_by_length(summary, "t", tmp_path / "cost.png")
    assert pictures(tmp_path)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("how_many", ["all", "one"])
def test_the_frontier_is_shown(benchmarks, tmp_path, how_many, right):
    benchmark = benchmarks["nupa"]
    samples = [
        replace(sample, readings=benchmark.score(index, Completion(sample.problem.answer, 9, 3, 0.5, "stop")).readings)
        if right and sample.answered
        else sample
        for index, sample in enumerate(answers(benchmark, how_many))
    ]
    shared = {sample.problem: sample for sample in samples if sample.answered}
    rows = frontier.points([frontier.Way("a", "direct", "plain loop", shared, {})])
    assert frontier.table(rows).page()
    assert frontier.in_short(rows)
    frontier.draw(rows, "t", tmp_path / "frontier.png")
    assert pictures(tmp_path)


@pytest.mark.parametrize("estimates", [{}, {"exact match": [None, None]}])
def test_a_sweep_in_which_nothing_was_measured_is_shown(tmp_path, estimates):
    by_cell(["a", "b"], estimates, ["exact match"], "cell", "t", tmp_path / "sweep.png")
    assert pictures(tmp_path)
