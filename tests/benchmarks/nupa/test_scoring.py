from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from lab.benchmarks.benchmark import Subset, measure
from lab.benchmarks.nupa.figures import nupa_by_range
from lab.benchmarks.nupa.problems import ENOUGH, has_enough, out_of_reach, pick_problems, solved_before, solved_examples
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.nupa.tables import all_tables, by_training, change_table, changes, trained_and_beyond
from lab.benchmarks.results import Reading, Sample, Summary
from lab.config.evaluation import NupaConfig
from lab.config.notation import FormatConfig
from lab.config.schema import RulesConfig
from lab.engines.engine import GREEDY, Completion
from lab.errors import RunError, TaskError
from lab.numbers.metrics import METRICS
from lab.numbers.sampling import Cell, block
from lab.numbers.splits import split_of, unordered
from lab.numbers.statistics import wilson
from lab.numbers.tasks import TASKS
from lab.runs import Run
from lab.text import rule_following
from lab.text.prompts import prompt
from lab.text.wording import RuleFollowing, wording_of

CELLS = [Cell(TASKS[key], n) for key in ("add_integer", "max_fraction") for n in (3, 4, 5, 9)]


class Oracle:
    """An engine that answers everything right, but for the additions, where it is one digit short.

    It answers four questions at a time, a token a character; those of `broken` never.
    """

    format = FormatConfig()

    def __init__(self, problems, broken=()):
        self.problems, self.broken = problems, broken
        self.asked = []

    def count_tokens(self, text):
        return len(text)

    def generate(self, requests, sampling=GREEDY, done=frozenset()):
        for start in range(0, len(requests), 4):
            batch = [i for i in range(start, min(start + 4, len(requests))) if i not in done]
            self.asked += batch
            yield {i: self.answer(i) for i in batch}

    def answer(self, index):
        if index in self.broken:
            return Completion("", 0, 0, 0.0, "api_error", api_error="503 out of order")
        text = f" {self.problems[index].answer}"
        if self.problems[index].task == "add":
            text = text[:-1]
        return Completion(text, 1, len(text), 0.0, "stop")


class Follower(Oracle):
    """An engine that follows rules to the letter, but for the additions, where every sum is 7."""

    def tokens_needed(self, prompt, completion):
        return len(prompt) + len(completion) + 1

    def answer(self, index):
        text = rule_following.completion(self.problems[index])
        if self.problems[index].task == "add":
            text = "\n".join("total = 7" if line.startswith("total = ") else line for line in text.splitlines())
        return Completion(text, 1, len(text), 0.0, "stop")


def test_followed_rules_are_read_at_their_end_and_their_first_wrong_line_is_told(tmp_path):
    problems = pick_problems(CELLS, 0, 4)
    benchmark, follower = Nupa(problems, RuleFollowing()), Follower(problems)
    for request, item in zip(benchmark.requests(), problems, strict=True):
        assert "\nRule:\ndef " in request.prompt
        text = rule_following.completion(item)
        assert request.max_tokens >= len(text)
        assert request.decided(f"{text}\n")
        assert not request.decided(text)
    with Run.open(tmp_path / "run", "name: run\n") as run:
        samples = measure(benchmark, follower, run)
        summary = benchmark.summarize(samples)
        for sample in samples:
            if sample.task == "add_integer":
                assert sample.remarks["first_error"]["kind"] == "statement"
                assert sample.remarks["first_error"]["expected"].startswith("total = int(")
            else:
                assert sample.remarks["first_error"] is None
            assert sample.right
        assert summary["add_integer"].first_errors["S"] == {"statement": 4}
        assert summary["max_fraction"].first_errors["M"] == {"none": 4}
        table = all_tables({"model": summary})["first_errors_of_traces"]
        assert ("max_fraction", "model", "M", "4") in [row[:4] for row in table.rows]
        with pytest.raises(RunError, match="belongs to no question of this run"):  # the rule has changed since
            measure(Nupa(problems, RuleFollowing(RulesConfig(unit=1))), follower, run)


def test_what_its_rule_needs_more_room_for_than_the_window_is_left_out_and_counted():
    problems = pick_problems(CELLS, 0, 4)
    needs = [len(rule_following.prompt(p)) + len(rule_following.completion(p)) + 1 for p in problems]
    for window in (min(needs), sorted(needs)[len(needs) // 2], max(needs) - 1, max(needs)):
        benchmark = Nupa(problems, RuleFollowing(RulesConfig(window=window))).within_window(Follower(problems))
        assert len(benchmark) == sum(need <= window for need in needs)
        assert benchmark.left_out.total() == len(problems) - len(benchmark)
        assert bool(benchmark.note) == (len(benchmark) < len(problems))
    with pytest.raises(TaskError, match=f"no problem fits a window of 9 tokens; the shortest needs {min(needs)}"):
        Nupa(problems, RuleFollowing(RulesConfig(window=9))).within_window(Follower(problems))


def test_an_engine_whose_tokenizer_is_out_of_sight_leaves_nothing_out():
    problems = pick_problems(CELLS, 0, 4)
    engine = Follower(problems)
    engine.tokens_needed = lambda prompt, completion: None
    assert len(Nupa(problems, RuleFollowing(RulesConfig(window=9))).within_window(engine)) == len(problems)


def test_problems_are_spread_evenly_over_the_lengths_of_each_range():
    problems = pick_problems(CELLS, 0, 10)
    counts = Counter((p.task, p.length) for p in problems)
    assert counts["add", 3] == counts["add", 4] == 5  # S
    assert counts["add", 5] == counts["add", 9] == 10  # all of M, all of L
    assert len(set(problems)) == len(problems) == 60
    assert pick_problems(CELLS, 0, 10) == problems
    assert set(pick_problems(CELLS, 0, 4)) <= set(problems)


def test_a_budget_holds_the_longest_answer_of_its_task_and_length():
    problems = pick_problems(CELLS, 0, 10)
    for setting, surplus in {"base": 8, "chat": 64, "api": 64, "rule_following": 64}.items():
        wording = wording_of(setting)
        requests = Nupa(problems, wording).requests()
        longest = defaultdict(int)
        for problem in problems:
            cell = problem.task, problem.length
            longest[cell] = max(longest[cell], len(wording.completion(problem)))
        for problem, request in zip(problems, requests, strict=True):
            assert request.max_tokens == longest[problem.task, problem.length] + surplus
    assert Nupa(problems, surplus_tokens=4000).requests()[0].max_tokens > 4000


def test_what_is_on_disk_is_not_asked_again_and_the_summary_counts_everything(tmp_path):
    problems = pick_problems(CELLS, 0, 10)
    oracle, benchmark = Oracle(problems), Nupa(problems)
    run = Run.open(tmp_path / "run", "name: x\n")
    samples = measure(benchmark, oracle, run)
    assert oracle.asked == list(range(60))
    run.rewrite("samples", run.read("samples")[:10])
    oracle.asked = []
    assert measure(benchmark, oracle, run) == samples
    assert oracle.asked == list(range(10, 60))

    summary = benchmark.summarize(samples)
    assert summary["max_fraction"].ranges["S"].metric("strict", "exact_match").value == 1
    assert summary["max_fraction"].digits["strict"]["exact_match"] is None  # 5 answers at lengths 3 and 4
    add = summary["add_integer"].ranges["L"]
    assert add.metric("loose", "exact_match").value == 0
    assert add.metric("strict", "dlength").value == 1
    assert summary["add_integer"].domains["S+M"].metric("strict", "exact_match").n == 20
    assert sum(sum(counts.values()) for counts in summary["add_integer"].errors.values()) == 30
    assert not summary["max_fraction"].errors


def test_what_tuning_changed_is_tested_on_pairs_of_answers(tmp_path):
    problems = pick_problems(CELLS, 0, 10)
    benchmark, run = Nupa(problems), Run.open(tmp_path / "run", "name: x\n")
    after = measure(benchmark, Oracle(problems), run)
    wrong = {"strict": Reading("0", False, 0.0, 0)}
    before = [replace(sample, readings=wrong) if sample.task == "max_fraction" else sample for sample in after]
    rows = changes(before, after)
    assert [(row.task, row.range, row.difference.n) for row in rows] == [
        (task, name, 10) for task in ("add", "max") for name in ("S", "M", "L")
    ]
    table = change_table(rows, "")
    assert "| max | fraction | S | 3-4 | 10 | 0 (0-28) | 100 (72-100) | 0.012 |" in table.markdown()  # 6 x 2 / 2^10
    assert "| add | integer | S | 3-4 | 10 | 0 (0-28) | 0 (0-28) | 1.000 |" in table.markdown()
    assert table.rows[-1][:1] + table.rows[-1][4:5] == ("all", "60")
    assert table.better == {3, 4, 5, 6}


def test_trained_lengths_stand_beside_those_beyond(tmp_path):
    problems = pick_problems(CELLS, 0, 10)
    benchmark, run = Nupa(problems), Run.open(tmp_path / "run", "name: x\n")
    after = measure(benchmark, Oracle(problems), run)
    wrong = {"strict": Reading("0", False, 0.0, 0)}
    before = [replace(sample, readings=wrong) for sample in after]
    trained = [Cell(TASKS["max_fraction"], 1), Cell(TASKS["max_fraction"], 4), Cell(TASKS["add_integer"], 99)]
    table = trained_and_beyond(changes(before, after, by_training(trained)), "")
    assert "| max | fraction | 3-4 (10) | 0 (0-28) | 100 (72-100) | 5-9 (20) | 0 (0-16) | 100 (84-100) |" in (
        table.markdown()
    )
    assert "| add | integer | 3-9 (30) | 0 (0-11) | 0 (0-11) |  |  |  |" in table.markdown()
    assert table.rows[-1][:3] + table.rows[-1][5:6] == ("all", "", "(40)", "(20)")
    assert table.better == {1}


def test_what_an_endpoint_never_answered_is_counted_apart_and_asked_again_on_resuming(tmp_path):
    problems = pick_problems(CELLS, 0, 10)
    benchmark, run = Nupa(problems), Run.open(tmp_path / "run", "name: x\n")
    samples = measure(benchmark, Oracle(problems, broken=range(25, 40)), run)
    assert [sample.index for sample in samples if not sample.answered] == list(range(25, 40))
    summary = benchmark.summarize(samples)
    add_l, max_s = summary["add_integer"].ranges["L"], summary["max_fraction"].ranges["S"]
    assert (add_l.asked, add_l.api_errors, add_l.metric("strict", "exact_match").n) == (10, 5, 5)
    assert (max_s.asked, max_s.api_errors) == (10, 10)
    assert max_s.strict is None
    assert summary["add_integer"].errors["L"]["api_error"] == 5
    text = all_tables({"x": summary})["exact_match_strict"].markdown()
    assert "| max_fraction | x |  | 100 (72-100) | 100 (72-100) |  | 100 (72-100) | 100 (72-100) | 0 10 10 0 |" in text

    whole = Oracle(problems)
    again = measure(benchmark, whole, run)
    assert whole.asked == list(range(25, 40))
    assert not any(sample.completion.api_error for sample in again)
    assert len(run.read("samples")) == 60


@pytest.mark.parametrize("key", TASKS)
def test_solved_examples_are_of_five_lengths_and_never_of_the_test(key):
    task = TASKS[key]
    examples = solved_examples(task, 5, seed=0)
    lengths = [item.length for item in examples]
    assert len(set(lengths)) == 5
    assert lengths == sorted(lengths)
    assert lengths[-1] == task.difficulty.ranges["M"][-1]
    for item in examples:
        split = split_of(item.representation, item.a, item.b, item.length, task.tested_lengths)
        assert split == "train"


def test_if_every_training_question_is_asked_there_is_no_example_and_no_endless_search():
    task = TASKS["to_float_fraction"]
    stream = [item for number in range(8) for item in block(Cell(task, 1), "train", 0, number)]
    asked = {(task.key, *unordered(item.a, item.b)) for item in stream}  # there are twelve of one digit
    assert len(asked) < 20
    with pytest.raises(TaskError, match="to_float_fraction: no training question of 1 digits was found"):
        solved_examples(task, 1, 0, asked)


def test_more_answers_are_never_too_few_where_fewer_were_enough():
    cell = Cell(TASKS["to_float_fraction"], 1)
    enough = [has_enough(cell, answers) for answers in range(1, ENOUGH + 2)]
    assert enough == sorted(enough)
    assert enough[-1]


def test_the_examples_stand_before_the_question_as_lines_or_as_turns():
    problems = pick_problems(CELLS[:2], 0, 1)
    first, item = (
        Nupa(problems, wording_of("base", solved=solved_before(problems, 5))).requests()[0].prompt,
        problems[0],
    )
    lines = first.split("\n")
    assert len(lines) == 6
    assert lines[-1] == prompt(item)
    assert all("=" in line and not line.endswith("=") for line in lines[:-1])
    chat = Nupa(problems, wording_of("chat", solved=solved_before(problems, 2))).requests()[0].prompt
    assert [message.role for message in chat] == ["user", "assistant"] * 2 + ["user"]
    api = Nupa(problems, wording_of("api", solved=solved_before(problems, 1))).requests()[0].prompt
    assert [message.role for message in api] == ["system", "user", "assistant", "user"]
    assert api[0].content.endswith('must strictly match the format r"\\d+".')
    assert api[2].content.startswith("The answer is ")


def test_a_limit_takes_questions_from_everywhere():
    problems = pick_problems(CELLS, 0, 10)
    some = Subset(Nupa(problems), 6)
    assert [some.problems[i].length for i in range(len(some))] == [3, 5, 9] * 2
    assert len(some.requests()) == 6
    assert len(Subset(Nupa(problems), 1000)) == 60


def test_errors_of_sums_have_their_class_and_other_tasks_have_none():
    problems = pick_problems(CELLS, 0, 10)
    benchmark = Nupa(problems)
    index = next(i for i, p in enumerate(problems) if p.task == "add" and 0 < int(p.answer[-1]) < 9)
    answer = int(problems[index].answer)

    def error(text, place=index):
        return benchmark.score(place, Completion(text, 1, 1, 0.0, "stop")).readings["strict"].error

    assert error(f" {answer}") == "correct"
    assert error(f" {answer + 1}") == "carry_1d"
    assert error(f" {answer - 1}") == "sub_1d"
    assert error(" nothing") == "parse_error"
    assert error(" 1/2", next(i for i, p in enumerate(problems) if p.task == "max")) is None


def test_answers_to_other_questions_are_not_taken_for_answers_to_these(tmp_path):
    run = Run.open(tmp_path / "run", "name: x\n")
    old, new = pick_problems(CELLS, 0, 4), pick_problems(CELLS, 1, 4)
    measure(Nupa(old), Oracle(old), run)
    with pytest.raises(RunError, match="belongs to no question of this run"):
        measure(Nupa(new), Oracle(new), run)
    with pytest.raises(RunError, match="belongs to no question of this run"):
        measure(Nupa(old[:5]), Oracle(old), run)


def answered(problems):
    """Samples of the oracle's answers."""
    benchmark, oracle = Nupa(problems), Oracle(problems)
    answers = [oracle.answer(i) for i in range(len(problems))]
    return [Sample(i, problems[i], "", done, benchmark.score(i, done).readings) for i, done in enumerate(answers)]


def test_digits_are_only_called_well_learned_where_every_length_was_asked_often_enough():
    """With one answer at each of 96 lengths, one right by chance would make a model look good at 90 digits."""
    cells = [Cell(TASKS["max_fraction"], n) for n in (5, 6)]
    for per_range, enough in ((2 * ENOUGH, True), (2 * ENOUGH - 1, False)):
        problems = pick_problems(cells, 0, per_range)
        samples = answered(problems)
        summary = Nupa(problems).summarize(samples)["max_fraction"].digits["strict"]["exact_match"]
        assert (summary is not None) == enough
        if summary:
            assert summary.well_learned == summary.well_learned_contiguous == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "enough"),
    [
        (["add_integer"], "120 for tasks of up to 20 digits"),
        (["max_float"], "800 for tasks of up to 100 digits"),
        (["max_float", "add_fraction"], "120 for tasks of up to 20 digits and 800 for tasks of up to 100 digits"),
    ],
)
def test_a_config_with_too_few_problems_for_digits_is_told_how_many_are_enough(tasks, enough):
    told = out_of_reach(NupaConfig(tasks=tasks))
    assert f"benchmark.problems_per_range should be {enough} (now 100)" in told
    most = max(int(word) for word in enough.split() if int(word.isdigit() and word) > 100)
    for per_range in (most - 1, most):
        config = NupaConfig(tasks=tasks, problems_per_range=per_range)
        counts = Counter((p.task, p.length) for p in pick_problems(config.cells(), 0, per_range))
        assert (out_of_reach(config) == "") == (per_range == most)
        assert (min(counts.values()) >= ENOUGH) == (per_range == most)
    assert "now 800 with limit=9" in out_of_reach(NupaConfig(problems_per_range=800), limit=9)


def test_where_there_are_fewer_test_problems_than_digits_need_all_of_them_are_enough():
    problems = pick_problems([Cell(TASKS["to_float_fraction"], 1)], 0, 100)
    assert 1 < len(problems) < ENOUGH
    for asked, reached in ((problems, 1), (problems[1:], None)):
        digits = Nupa(asked).summarize(answered(asked))["to_float_fraction"].digits["strict"]["exact_match"]
        assert (digits and digits.well_learned) == reached


@pytest.mark.slow
def test_where_one_problem_was_asked_no_metric_is_certain(tmp_path):
    problems = pick_problems([Cell(TASKS["max_fraction"], 9)], 0, 1)
    benchmark = Nupa(problems)
    with Run.open(tmp_path / "run", "name: run\n") as run:
        summary = benchmark.summarize(measure(benchmark, Oracle(problems), run))
        run.write_json("summary", Summary(nupa=summary).to_json())
    strict = summary["max_fraction"].ranges["L"].strict
    assert strict.digit_match == strict.exact_match == wilson(1, 1)
    assert strict.dlength.to_json() == {"value": 0.0, "low": None, "high": None, "n": 1}
    assert "| max_fraction | model |  |  | 0.0 |" in all_tables({"model": summary})["dlength_strict"].markdown()
    for metric in METRICS:
        nupa_by_range({"model": summary}, metric, "one problem", tmp_path / "one.png")


def test_an_example_is_never_one_of_the_questions():
    task = TASKS["add_integer"]
    examples = solved_examples(task, 5, seed=0)
    chosen = solved_before(examples, 5)[task.key]
    assert not {(p.a, p.b) for p in chosen} & {(p.a, p.b) for p in examples}
    assert [p.length for p in chosen] == [p.length for p in examples]
