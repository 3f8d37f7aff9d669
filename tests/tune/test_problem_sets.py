import re

import pytest

from lab.config.notation import FormatConfig
from lab.config.schema import RulesConfig, Variation
from lab.errors import TaskError
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.text.formats import TextFormat
from lab.text.templates import ManyTemplates
from lab.text.wording import Reworded, RuleFollowing, Wording
from lab.tune.problem_sets import ProblemSet, Rows, Selection, problem_set

CELLS = [Cell(TASKS[key], length) for key in ("add_integer", "max_integer") for length in (1, 2, 3, 12)]


def texts(examples, tokenizer) -> list[tuple[str, str]]:
    return [(tokenizer.decode(row["prompt_ids"]), tokenizer.decode(row["completion_ids"])) for row in examples]


def test_direct_examples_are_the_first_of_the_mixture_and_nothing_is_left_out(tokenizer):
    examples, left_out = problem_set(Selection(CELLS, 0), "train", 16, Rows(tokenizer, Wording()))
    assert len(examples) == 16
    assert left_out == {}
    longer, _ = problem_set(Selection(CELLS, 0), "train", 24, Rows(tokenizer, Wording()))
    assert texts(examples, tokenizer) == texts(longer, tokenizer)[:16]


def test_within_a_step_the_examples_of_a_task_stand_side_by_side(tokenizer):
    plain, _ = problem_set(Selection(CELLS, 0), "train", 16, Rows(tokenizer, Wording()))
    grouped, _ = problem_set(Selection(CELLS, 0), "train", 16, Rows(tokenizer, Wording()), together=8)
    for start in (0, 8):
        step = texts(grouped, tokenizer)[start : start + 8]
        assert sorted(step) == sorted(texts(plain, tokenizer)[start : start + 8])
        sums = ["Add two" in prompt for prompt, _ in step]
        assert sums == sorted(sums, reverse=True)


def test_what_exceeds_the_window_is_left_out_and_counted_and_others_take_its_place(tokenizer):
    def drawn(window: int) -> ProblemSet:
        return problem_set(Selection(CELLS, 0), "train", 40, Rows(tokenizer, RuleFollowing(RulesConfig(window=window))))

    window = 1600  # bytes: sums of 3 digits fit, of 12 do not; a comparison always does
    examples, left_out = drawn(window)
    needs = [len(row["prompt_ids"]) + len(row["completion_ids"]) for row in examples]
    assert len(needs) == 40
    assert max(needs) <= window
    _, all_left_out = drawn(100_000)
    assert all_left_out == {}
    assert left_out["add_integer"] >= 5
    assert set(left_out) == {"add_integer"}


def test_a_trace_that_has_to_fit_is_written_once_and_its_row_is_that_without_a_window(tokenizer, monkeypatch):
    following, unbounded = RuleFollowing(RulesConfig(window=100_000)), RuleFollowing()
    unbounded.window = None
    expected = list(problem_set(Selection(CELLS, 0), "train", 8, Rows(tokenizer, unbounded)).examples)
    written = []
    write = RuleFollowing.completion
    monkeypatch.setattr(RuleFollowing, "completion", lambda *given: written.append(given) or write(*given))
    rows = problem_set(Selection(CELLS, 0), "train", 8, Rows(tokenizer, following)).examples
    assert [list(rows), list(rows)] == [expected, expected]
    assert len(written) == 8


def test_a_window_too_small_for_any_problem_is_an_error_of_one_line(tokenizer):
    with pytest.raises(TaskError, match=r"fits data\.rules\.window=300: the shortest of 128 needs \d+ tokens") as error:
        problem_set(Selection(CELLS, 0), "train", 8, Rows(tokenizer, RuleFollowing(RulesConfig(window=300))))
    assert "\n" not in str(error.value)


def test_sums_are_asked_in_many_words_with_hard_cases_among_them(tokenizer):
    cells, written = [Cell(TASKS["add_integer"], 5)], TextFormat(FormatConfig(reverse="total"), [TASKS["add_integer"]])
    hard, asked_in = Selection(cells, 0, Variation(nines=1)), Rows(tokenizer, Reworded(written, [ManyTemplates()]))
    rows = texts(problem_set(Selection(cells, 0), "train", 64, Rows(tokenizer, written)).examples, tokenizer)
    varied = problem_set(hard, "train", 64, asked_in).examples
    asked = texts(varied, tokenizer)
    assert sum("99999" in prompt for prompt, _ in asked) > 50
    assert not any("99999" in prompt for prompt, _ in rows)
    assert len({re.sub("[0-9]+", "", prompt) for prompt, _ in asked}) > 30
    assert len({re.sub("[0-9]+", "", prompt) for prompt, _ in rows}) == 1
    again = problem_set(hard, "train", 64, asked_in).examples
    assert texts(again, tokenizer) == asked
