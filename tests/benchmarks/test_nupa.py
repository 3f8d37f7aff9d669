from collections import Counter

from lab.benchmarks.nupa import SURPLUS_TOKENS, measure, pick_problems, requests, summarize
from lab.inference.engine import Completion
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.reporting.tables import changes, markdown
from lab.runs import Run
from lab.text.prompts import completion

CELLS = [Cell(TASKS[key], n) for key in ("add_integer", "max_fraction") for n in (3, 4, 5, 9)]


class OneTokenACharacter:
    eos_token_id = 0

    def encode(self, text, *, add_special_tokens=True):
        return [ord(character) for character in text]


class Oracle:
    """An engine that answers everything right, but for the additions, where it is one digit short."""

    def __init__(self, problems):
        self.problems = problems
        self.asked = []

    def generate(self, asked, done=frozenset()):
        for start in range(0, len(asked), 4):
            batch = [i for i in range(start, min(start + 4, len(asked))) if i not in done]
            self.asked += batch
            texts = {i: completion(self.problems[i]) for i in batch}
            texts |= {i: text[:-1] for i, text in texts.items() if self.problems[i].task == "add"}
            yield {i: Completion(text, 1, len(text), 0.0, "stop") for i, text in texts.items()}


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
    for problem, request in zip(problems, requests(problems, OneTokenACharacter()), strict=True):  # type: ignore[arg-type]
        longest = max(len(completion(p)) for p in problems if (p.task, p.length) == (problem.task, problem.length))
        assert request.max_tokens == longest + SURPLUS_TOKENS


def test_what_is_on_disk_is_not_asked_again_and_the_summary_counts_everything(tmp_path):
    problems = pick_problems(CELLS, 0, 10)
    oracle = Oracle(problems)
    run = Run.open(tmp_path / "run", "name: x\n")
    samples = measure(oracle, problems, OneTokenACharacter(), run, "samples")  # type: ignore[arg-type]
    assert oracle.asked == list(range(60))
    run.rewrite("samples", run.read("samples")[:10])
    oracle.asked = []
    assert measure(oracle, problems, OneTokenACharacter(), run, "samples") == samples  # type: ignore[arg-type]
    assert oracle.asked == list(range(10, 60))

    summary = summarize(samples)
    assert summary["max_fraction"]["ranges"]["S"]["exact_match_strict"]["value"] == 1
    assert summary["max_fraction"]["digits"]["exact_match"]["well_learned_contiguous"] == 9
    add = summary["add_integer"]["ranges"]["L"]
    assert add["exact_match_loose"]["value"] == 0
    assert add["dlength"]["value"] == 1
    rows = changes(summary, summary)
    assert [(row.task, row.range, row.n) for row in rows] == [
        (task, name, 10) for task in ("add", "max") for name in ("S", "M", "L")
    ]
    assert "| max | fraction | S | 3-4 | 10 | 100 (72-100) | 100 (72-100) |" in markdown(rows)
