import json
import tracemalloc
from collections import Counter
from collections.abc import Set
from dataclasses import replace

import pytest

from lab.benchmarks.benchmark import Benchmark, measure
from lab.benchmarks.results import Sum, facts, read_samples
from lab.benchmarks.sums.figures import accuracy_by_digits
from lab.benchmarks.sums.tables import all_tables
from lab.benchmarks.sums.two_integers import FORMAT_FAILURES, TwoIntegers
from lab.config.evaluation import TwoIntegersConfig
from lab.drawing.tables import NOT_MEASURED
from lab.engines.engine import GREEDY, Completion
from lab.numbers.taxonomy import classify
from lab.runs import Run

SEED_PAGE = Sum("123456789012345", "987654321098765")
"""The sum of the examples in the benchmark's own description: 1111111110111110."""


def benchmark(*problems: Sum) -> TwoIntegers:
    made = TwoIntegers(TwoIntegersConfig(problems=1), seed=0)
    made.problems = list(problems)
    return made


def score(item: Sum, text: str, finish_reason: str = "stop"):
    found = benchmark(item).score(0, Completion(text, 1, 1, 0.0, finish_reason))
    return {name: reading.to_json() for name, reading in found.readings.items()} | dict(found.remarks)


class Fixed:
    """An engine that gives these answers; None is one that an endpoint never gave."""

    def __init__(self, *answers: str | None):
        self.answers = answers

    def count_tokens(self, text):
        return len(text)

    def generate(self, requests, sampling=GREEDY, done: Set[int] = frozenset()):
        for index, answer in enumerate(self.answers):
            if index not in done:
                yield {
                    index: Completion("", 0, 0, 0.0, "api_error", api_error="503")
                    if answer is None
                    else Completion(answer, 60, 5, float(index), "stop")
                }


def test_operands_have_2_to_30_digits_uniformly_and_independently():
    problems = TwoIntegers(TwoIntegersConfig(problems=3000), seed=0).problems
    for side in zip(*problems, strict=True):
        lengths = Counter(map(len, side))
        assert set(lengths) == set(range(2, 31))
        assert max(abs(count - 3000 / 29) for count in lengths.values()) < 50  # five standard deviations
        assert all(text[0] != "0" and text.isdecimal() and text.isascii() for text in side)
        assert Counter(text[0] for text in side).keys() == set("123456789")
        assert Counter(text[-1] for text in side).keys() == set("0123456789")
    both = Counter((len(a) > 15, len(b) > 15) for a, b in problems)
    assert both[True, True] == pytest.approx(3000 * (15 / 29) ** 2, rel=0.1)


def test_questions_are_distinct_and_those_of_the_seed():
    problems = TwoIntegers(TwoIntegersConfig(problems=500), seed=3).problems
    assert len({frozenset(item) for item in problems}) == 500
    assert problems[:100] == TwoIntegers(TwoIntegersConfig(), seed=3).problems
    assert problems[:100] != TwoIntegers(TwoIntegersConfig(), seed=4).problems
    # The same on every machine, for ever.
    assert TwoIntegers(TwoIntegersConfig(), seed=0).problems[0] == ("47", "94652392516603556029016")


def test_the_prompt_is_the_benchmarks_own():
    request = benchmark(Sum("12", "345")).requests()[0]
    assert [tuple(message) for message in request.prompt] == [
        (
            "user",
            "Provide the sum of the two numbers. Don't output anything else. Only output the sum of the two numbers "
            "without anything additional. Only output the final number, no calculation, no explanation, just the final "
            'number without any text.: "12" "345"',
        )
    ]
    assert request.max_tokens == 256


@pytest.mark.parametrize("text", ["357", " 357\n", "+357", "00357"])
def test_an_ascii_integer_of_the_right_value_is_a_success(text):
    item = Sum("12", "345")
    assert facts(benchmark(item).problems[0]) == {"int1": "12", "int2": "345", "answer": "357", "digits": 3}
    assert score(item, text) == {
        "strict": {"given": text.strip(), "success": True},
        "loose": {"given": text.strip(), "success": True},
        "final": {"given": text.strip(), "success": True},
        "outcome": "correct",
        "format_failure": None,
        "wrong_sum": None,
    }


@pytest.mark.parametrize(
    ("text", "kind", "loose"),
    [
        # the description's own examples
        ("123456789012345 + 987654321098765 = 1111111110111110", "shows_work", "123456789012345"),
        ("The sum is 1111111110111110", "explanation", "1111111110111110"),
        ("1.11111111e15", "scientific_notation", None),
        ("One trillion, one hundred eleven billion...", "words", None),
        # others
        ("", "empty", None),
        (" \n", "empty", None),
        ("...", "words", None),
        ("1.1 \N{MULTIPLICATION SIGN} 10^15", "scientific_notation", None),
        (r"1.1 \times 10^{15}", "scientific_notation", None),
        ("1.1E+15", "scientific_notation", None),
        ("= 1111111110111110", "shows_work", "1111111110111110"),
        ('"12"+"13"', "shows_work", "12"),
        ("1111111110111110.", "other", "1111111110111110"),
        ("**1111111110111110**", "other", "1111111110111110"),
        (r"\boxed{1111111110111110}", "other", "1111111110111110"),
        ("1111111110111110.0", "other", None),
        ("12\n13", "other", "12"),
        ("1,111,111,110,111,110", "not_ascii", None),
        ("1 111 111 110 111 110", "not_ascii", None),
        ("1_111_111_110_111_110", "not_ascii", None),
        ("\uff11\uff12", "not_ascii", None),
        ("١٢٣", "not_ascii", None),
        ("和为 1111111110111110", "explanation", "1111111110111110"),
        ("Sum: 1,111", "explanation", None),
        ("\N{MINUS SIGN}1111111110111110", "other", None),
        ("1e5 words 1" * 10_000, "scientific_notation", "1"),
        ("1" + "+" * 100_000, "other", "1"),
    ],
)
def test_what_is_no_integer_is_a_format_failure_of_its_kind(text, kind, loose):
    sample = score(SEED_PAGE, text)
    assert sample["format_failure"] == kind
    assert sample["outcome"] == "parse_error"
    assert sample["strict"] == {"given": None, "success": False}
    assert sample["loose"] == {"given": loose, "success": loose == "1111111110111110"}
    assert sample["wrong_sum"] is None


def test_an_answer_cut_off_by_the_budget_is_truncated_unless_it_is_an_integer():
    assert score(SEED_PAGE, "The sum is", "length")["format_failure"] == "truncated"
    assert score(SEED_PAGE, "", "length")["format_failure"] == "truncated"
    cut = score(SEED_PAGE, "11111111101111", "length")
    assert cut["format_failure"] is None
    assert cut["wrong_sum"] == ["wrong_length"]


@pytest.mark.parametrize(
    ("given", "outcome", "tags"),
    [
        ("1111111110111111", "carry_1d", ["off_by_one", "unit_step"]),  # the description's: off by one
        ("1111111110111000", "value_nd", ["rounded"]),  # the description's: lost precision
        ("1111111110111010", "sub_1d", ["unit_step"]),  # a missed carry
        ("111111111011111", "value_nd", ["wrong_length"]),
        ("1111111110111100", "sub_1d", ["rounded", "unit_step"]),
        ("1111111190111110", "carry_1d", []),
        ("-1111111110111110", "value_nd", []),
    ],
)
def test_a_wrong_sum_has_a_class_and_every_tag_that_holds(given, outcome, tags):
    sample = score(SEED_PAGE, given)
    assert sample["outcome"] == outcome == classify(given, SEED_PAGE.answer)
    assert sample["wrong_sum"] == tags
    assert sample["format_failure"] is None


def test_figures_are_counted_by_hand_and_an_api_error_is_in_the_count_of_its_own(tmp_path):
    problems = Sum("12", "13"), Sum("12", "345"), Sum("99", "901"), Sum("10", "20"), Sum("55", "44")
    adding: Benchmark = benchmark(*problems)
    engine = Fixed("25", "It is 357.", "999", None, "9.9e1")
    run = Run.open(tmp_path / "run", "name: x\n")
    samples = measure(adding, engine, run)
    assert [sample.remarks["outcome"] for sample in samples if sample.answered] == [
        "correct",
        "parse_error",
        "sub_1d",
        "parse_error",
    ]
    summary = adding.summarize(samples).to_json()
    assert json.loads(json.dumps(summary)) == summary
    assert adding.summarize(read_samples(run)).to_json() == summary
    assert (summary["asked"], summary["answered"], summary["api_errors"]) == (5, 4, 1)
    assert (summary["success_rate"]["strict"]["value"], summary["success_rate"]["strict"]["n"]) == (1 / 4, 4)
    assert summary["success_rate"]["loose"]["value"] == 2 / 4
    assert summary["success_rate"]["final"]["value"] == 2 / 4
    of_asked = summary["success_rate_of_asked"]
    assert (of_asked["strict"]["value"], of_asked["loose"]["value"], of_asked["loose"]["n"]) == (1 / 5, 2 / 5, 5)
    assert summary["outcomes"] == {
        "correct": 1,
        "carry_1d": 0,
        "sub_1d": 1,
        "order_2d": 0,
        "value_nd": 0,
        "parse_error": 2,
    }
    assert summary["outcome_shares"]["parse_error"]["value"] == 2 / 4
    expected = dict.fromkeys(FORMAT_FAILURES, 0) | {"explanation": 1, "scientific_notation": 1}
    assert summary["format_failures"] == expected
    assert summary["wrong_sums"] == {"off_by_one": 1, "rounded": 0, "wrong_length": 1, "unit_step": 1}
    assert summary["seconds"]["mean"]["value"] == (0 + 1 + 2 + 4) / 4
    assert (summary["seconds"]["median"], summary["seconds"]["total"]) == (1.5, 7)
    assert summary["tokens"] == {"prompt": 240, "completion": 20}
    assert list(summary["by_digits"]) == ["2", "3"]
    assert [summary["by_digits"][n]["api_errors"] for n in "23"] == [1, 0]
    two, three = summary["by_digits"]["2"], summary["by_digits"]["3"]
    assert (two["strict"]["value"], two["loose"]["value"], two["strict"]["n"]) == (1 / 2, 1 / 2, 2)
    assert (three["strict"]["value"], three["loose"]["value"], three["strict"]["n"]) == (0, 1 / 2, 2)
    assert two["outcomes"]["parse_error"] == three["outcomes"]["sub_1d"] == 1
    assert three["outcome_shares"]["sub_1d"]["value"] == 1 / 2

    # A resumed run asks again for the answer that did not come, and for nothing else.
    assert measure(adding, Fixed("0", "0", "0", "30", "0"), run)[3].remarks["outcome"] == "correct"


def test_where_nothing_was_answered_there_is_no_rate(tmp_path):
    adding = benchmark(Sum("12", "13"))
    summary = adding.summarize(measure(adding, Fixed(None), Run.open(tmp_path / "run", "name: x\n"))).to_json()
    assert summary["api_errors"] == 1
    assert summary["success_rate"] == {"strict": None, "loose": None}
    assert summary["success_rate_of_asked"]["strict"]["n"] == 1
    assert summary["seconds"] == {"mean": None, "median": None, "total": 0}
    assert summary["by_digits"] == {}
    assert adding.summarize([]).success_rate_of_asked == {"strict": None, "loose": None}


@pytest.mark.slow
def test_the_third_reading_stands_beside_the_others_in_tables_and_a_run_without_it_does_too(tmp_path):
    adding = benchmark(Sum("500000000", "512915637"), Sum("12", "13"))
    samples = measure(adding, Fixed("The sum is **1,012,915,637**.", "25"), Run.open(tmp_path / "run", "name: x\n"))
    new = adding.summarize(samples)
    assert [new.success_rate[reading].value for reading in ("strict", "loose", "final")] == [1 / 2, 1 / 2, 1]
    before = [replace(s, readings={name: s.readings[name] for name in ("strict", "loose")}) for s in samples]
    old = adding.summarize(before)
    assert list(old.success_rate) == ["strict", "loose"]
    assert old.success_rate["strict"] == new.success_rate["strict"]
    tables = all_tables({"new": new, "old": old})
    shown = dict(zip(tables["success"].columns, zip(*tables["success"].rows, strict=True), strict=True))
    assert str(shown["final %"][0]).startswith("100")
    assert shown["final %"][1] == NOT_MEASURED
    assert "new, final %" in tables["by_digits"].columns
    accuracy_by_digits({"new": new, "old": old}, "both", tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").is_file()


def test_a_million_samples_of_a_finished_run_fit_in_memory(tmp_path):
    problems = [Sum(str(10**8 + i), str(2 * 10**8 + i)) for i in range(200)]
    adding, run = benchmark(*problems), Run.open(tmp_path / "run", "name: x\n")
    answers = Fixed(*(problem.answer for problem in problems))
    requests = adding.requests()
    measure(adding, answers, run, requests=requests)
    tracemalloc.start()
    try:
        samples = measure(adding, answers, run, requests=requests)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(sample.question is problem for sample, problem in zip(samples, problems, strict=True))
    assert size / len(samples) < 2000  # bytes
