"""What benchmarks say of themselves in a few lines."""

from lab.benchmarks import compare
from lab.benchmarks.compare import Compared
from lab.benchmarks.length_curves import tables as length_curves
from lab.benchmarks.nupa import in_short
from lab.benchmarks.nupa.tables import Change
from lab.benchmarks.results import Figures, Scores, TaskSummary
from lab.numbers.paired import Difference
from lab.numbers.statistics import Estimate, wilson


def scores(right: int, n: int) -> Scores:
    return Scores(exact_match=wilson(right, n), digit_match=Estimate(0, 0, 0, n), dlength=Estimate(0, 0, 0, n))


def task(**ranges: tuple[int, int]) -> TaskSummary:
    figures = {
        name: Figures(lengths=(1, 4), asked=n, api_errors=0, strict=scores(right, n), loose=scores(n, n))
        for name, (right, n) in ranges.items()
    }
    return TaskSummary(ranges=figures)


def test_nupa_is_told_over_all_questions_by_representation_and_by_operation():
    summary = {"add_integer": task(S=(3, 4), M=(0, 4)), "add_float": task(S=(0, 2)), "max_integer": task(S=(2, 2))}
    right, representations, operations, ranges = in_short.found(summary)
    assert right == "exact match, % (95 % interval), n=12: 42 (19-68); with the loose reading 100 (76-100)"
    assert representations == "by representation: integer 50 (24-76), float 0 (0-66)"
    assert operations == "by operation: max 100 (34-100), add 30 (11-60)"
    assert ranges == "by range: S 62 (31-86), M 0 (0-49)"


def test_a_task_without_an_answer_does_not_count():
    silent = TaskSummary(ranges={"S": Figures(lengths=(1, 4), asked=4, api_errors=4)})
    assert in_short.found({"add_integer": silent}) == ["no question was answered"]
    assert "n=2" in in_short.found({"add_integer": silent, "max_integer": task(S=(1, 2))})[0]


def test_a_division_that_has_one_part_is_not_told():
    assert len(in_short.found({"max_integer": task(S=(1, 2))})) == 1


def test_a_division_into_equal_parts_is_not_told():
    nothing = {"add_integer": task(S=(0, 4), M=(0, 2)), "max_float": task(S=(0, 3))}
    assert len(in_short.found(nothing)) == 1


def test_tuning_is_told_by_its_largest_changes_beyond_chance():
    gained, equal = Difference(0, 8, 0, 0), Difference(0, 1, 1, 6)
    rows = [Change("max", "integer", "S", "3-4", gained, gained.p), Change("add", "float", "S", "3-4", equal, equal.p)]
    whole, representations, largest = in_short.changed(rows)
    assert whole.startswith("exact match, % (95 % interval), n=16: 6 (1-28) before, 56 (33-77) after; p 0.0")
    assert representations == "by representation: integer 0 (0-32) to 100 (68-100), float 12 (2-47) to 12 (2-47)"
    assert largest.startswith("largest changes, in points: max integer S +100 ")
    assert largest.endswith("; 1 of 2 rows changed beyond chance")


def test_tuning_that_changed_nothing_says_so():
    equal = Difference(0, 1, 1, 6)
    rows = [Change("add", "float", "S", "3-4", equal, equal.p)]
    assert in_short.changed(rows)[-1] == "largest changes, in points: none beyond chance"


def test_a_curve_is_told_by_how_far_it_holds_and_by_its_end():
    curve = {4: scores(10, 10), 8: scores(9, 10), 16: scores(5, 10), 32: scores(10, 10)}
    (line,) = length_curves.in_short({"add_integer": curve})
    assert line == "add_integer: at least 90 % right up to 8 digits; at 32 digits 100 (72-100) %, n=10"
    (line,) = length_curves.in_short({"add_integer": {4: scores(0, 10)}})
    assert line == "add_integer: below 90 %; at 4 digits 0 (0-28) %, n=10"


def test_a_comparison_names_the_tasks_that_differ_and_what_could_have_been_seen():
    lost, equal = Difference(0, 0, 8, 0), Difference(4, 1, 1, 2)
    rows = [Compared("b", "all", equal, 1.0), Compared("b", "max_integer", lost, 0.02), Compared("b", "x", equal, 1.0)]
    (line,) = compare.differences_in_short("a", rows)
    assert line.startswith("b against a, in points: +0 ")
    assert "p 1.000, n=8, a difference of 88 points would be significant; max_integer -100 " in line
    assert "; x " not in line
    (alone,) = compare.differences_in_short("a", [Compared("b", "all", lost, 0.02)])
    assert alone.endswith("p 0.020, n=8")
