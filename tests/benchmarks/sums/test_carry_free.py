import json
from collections import Counter
from collections.abc import Set

import pytest

from lab.benchmarks.benchmark import Benchmark, measure
from lab.benchmarks.results import Sum, facts, parse_errors, read_samples
from lab.benchmarks.sums.carry_free import CarryFree
from lab.config.evaluation import CarryFreeConfig
from lab.engines.engine import GREEDY, Completion
from lab.numbers.taxonomy import classify
from lab.runs import Run
from lab.text.examples import Message

TWENTY_AND_64 = Sum("20", "64")


def benchmark(*problems: Sum, **settings) -> CarryFree:
    made = CarryFree(CarryFreeConfig(lengths=(2, 2), problems_per_length=1, **settings), seed=0)
    made.problems = list(problems)
    return made


def score(text: str, finish_reason: str = "stop", reasoning: str = "", item: Sum = TWENTY_AND_64):
    found = benchmark(item).score(0, Completion(text, 1, 1, 0.0, finish_reason, reasoning))
    return {name: reading.to_json() for name, reading in found.readings.items()} | dict(found.remarks)


class Fixed:
    """An engine that gives these completions; None is one that an endpoint never gave."""

    def __init__(self, *completions: Completion | None):
        self.completions = completions

    def count_tokens(self, text):
        return len(text)

    def generate(self, requests, sampling=GREEDY, done: Set[int] = frozenset()):
        for index, completion in enumerate(self.completions):
            if index not in done:
                yield {index: completion or Completion("", 0, 0, 0.0, "api_error", api_error="429")}


def test_every_length_has_its_number_of_distinct_problems_and_no_column_carries():
    problems = CarryFree(CarryFreeConfig(), seed=0).problems
    assert Counter(len(a) for a, _ in problems) == dict.fromkeys(range(2, 23), 200)
    assert len({frozenset(item) for item in problems}) == len(problems) == 21 * 200
    for a, b in problems:
        assert len(a) == len(b) == len(str(int(a))) == len(str(int(b)))
        assert all(int(x) + int(y) <= 9 for x, y in zip(a, b, strict=True))


def test_digits_are_drawn_as_the_benchmark_says():
    problems = CarryFree(CarryFreeConfig(lengths=(20, 20), problems_per_length=2000), seed=0).problems
    first, others = Counter(a[0] for a, _ in problems), Counter("".join(a[1:] for a, _ in problems))
    assert first.keys() == set("12345678")
    assert min(first.values()) > 180  # of 250
    assert others.keys() == set("0123456789")
    assert min(others.values()) > 3600  # of 3,800
    under_3 = Counter(y for a, b in problems for x, y in zip(a[1:], b[1:], strict=True) if x == "3")
    assert under_3.keys() == set("0123456")
    assert min(under_3.values()) > 450  # of 543
    under_first_3 = Counter(b[0] for a, b in problems if a[0] == "3")
    assert under_first_3.keys() == set("123456")


def test_problems_are_those_of_the_seed_whatever_else_is_asked():
    problems = CarryFree(CarryFreeConfig(lengths=(5, 6), problems_per_length=50), seed=1).problems
    assert problems[50:60] == CarryFree(CarryFreeConfig(lengths=(6, 9), problems_per_length=10), seed=1).problems[:10]
    assert problems != CarryFree(CarryFreeConfig(lengths=(5, 6), problems_per_length=50), seed=2).problems
    # The same on every machine, for ever.
    assert CarryFree(CarryFreeConfig(), seed=0).problems[:2] == [("74", "22"), ("25", "53")]


def test_a_length_gives_no_more_problems_than_it_has():
    every = CarryFree(CarryFreeConfig(lengths=(2, 2), problems_per_length=5000), seed=0).problems
    possible = {
        frozenset((str(a), str(b)))
        for a in range(10, 100)
        for b in range(10, 100)
        if a // 10 + b // 10 < 10 and a % 10 + b % 10 < 10
    }
    assert {frozenset(item) for item in every} == possible
    assert len(every) == len(possible) == 1000


def test_the_prompt_is_the_benchmarks_own_or_its_english_twin():
    zh, en = (benchmark(Sum("20", "64"), language=language).requests()[0] for language in ("zh", "en"))
    assert [tuple(message) for message in zh.prompt] == [
        ("user", r"列竖式计算表达式的值，计算结果放 \boxed{} 中，例如结果为2, 写成 \boxed{2}。表达式:20+64")  # noqa: RUF001
    ]
    assert isinstance(en.prompt[0], Message)
    assert en.prompt[0].content.endswith(r"write \boxed{2}. Expression:20+64")
    assert (zh.max_tokens, zh.group) == (2048, "")


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{84}",
        r"写成 \boxed{2}，所以 \boxed{84}。",  # noqa: RUF001
        r"$$\boxed{ 84 }$$",
        "\\boxed{\n84\n}",
        r"\boxed{8\,4}",
        r"\boxed{8\!4}",
        r"\boxed{8\:4\;}",
        r"\boxed{8,4}",
        r"\boxed{8 4}",
        r"\boxed{084}",
        r"\boxed{+84}",
        r"\boxed{84} and then 99",
        r"\boxed{80} or \boxed{84} or \boxed{never closed",
        r"`\boxed{` holds it: \boxed{84}",
    ],
)
def test_the_last_box_is_the_answer_cleaned_of_layout(text):
    sample = score(text)
    assert sample["strict"]["success"]
    assert sample["loose"]["success"]
    assert sample["outcome"] == "correct"
    assert sample["parse_error"] is None


@pytest.mark.parametrize(
    ("text", "finish_reason", "kind", "loose"),
    [
        ("20+64=84", "stop", "no_box", "84"),
        ("20+64", "stop", "no_box", None),
        ("", "stop", "no_box", None),
        ("boxed{84}", "stop", "no_box", "84"),
        (r"\boxed{84", "stop", "no_box", "84"),
        ("}", "stop", "no_box", None),
        ("20+64=8", "length", "truncated", "8"),
        (r"so \boxed{84", "length", "truncated", "84"),
        (r"\boxed{}", "stop", "empty_box", None),
        (r"84: \boxed{\, }", "length", "empty_box", "84"),
        (r"\boxed{\text{84}}", "stop", "not_an_integer", "84"),
        (r"\boxed{20+64=84}", "stop", "not_an_integer", "84"),
        (r"\boxed{84.0}", "stop", "not_an_integer", "84"),
        (r"\boxed{8_4}", "stop", "not_an_integer", None),
        (r"\boxed{" + "\uff18\uff14}", "stop", "not_an_integer", None),
        (r"\boxed{84} is \boxed{x}", "stop", "not_an_integer", "84"),
        (r"\boxed{" * 20_000, "stop", "no_box", None),
    ],
)
def test_an_answer_that_cannot_be_taken_has_its_kind(text, finish_reason, kind, loose):
    sample = score(text, finish_reason)
    assert sample["parse_error"] == kind
    assert sample["outcome"] == "parse_error"
    assert sample["strict"] == {"given": None, "success": False}
    assert sample["loose"] == {"given": loose, "success": loose == "84"}


def test_a_sample_says_how_its_answer_is_wrong():
    item = Sum("4567", "4332")
    assert facts(benchmark(item).problems[0]) == {"int1": "4567", "int2": "4332", "answer": "8899", "digits": 4}
    assert score(r"\boxed{8900}", item=item) == {
        "strict": {"given": "8900", "success": False},
        "loose": {"given": "8900", "success": False},
        "final": {"given": "8900", "success": False},
        "outcome": "carry_1d",
        "parse_error": None,
        "unit_step": True,
        "echoes_example": False,
        "right_in_text": [],
    }
    for given in ("8898", "9889", "8989", "2"):
        assert score(rf"\boxed{{{given}}}", item=item)["outcome"] == classify(given, "8899")


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        (r"\boxed{1{,}234{,}567}", ("1234567", "1234567", "1234567")),
        (r"\boxed{1,234,567}", ("1234567", "1234567", "1234567")),
        ("1,234,567", (None, "1234567", "1234567")),
        ("**1,234,567**, for 3 reasons", (None, "3", "1234567")),
        (r"\boxed{\text{1234567}}", (None, "1234567", "1234567")),
        ("\N{MINUS SIGN}1234567", (None, "-1234567", "-1234567")),
        ("1234567.5", (None, None, None)),
    ],
)
def test_a_number_is_whole_in_each_of_the_three_readings(text, readings):
    sample = score(text, item=Sum("1111111", "123456"))
    assert tuple(sample[name]["given"] for name in ("strict", "loose", "final")) == readings


def test_the_prompts_own_example_as_the_last_box_is_flagged():
    assert score(r"\boxed{84}, written like \boxed{2}")["echoes_example"]
    assert score(r"\boxed{2}")["outcome"] == "value_nd"
    assert not score(r"like \boxed{2}: \boxed{84}")["echoes_example"]
    assert not score("2")["echoes_example"]


@pytest.mark.parametrize(
    ("text", "reasoning", "places"),
    [
        (r"84 \boxed{94}", "", ["text"]),
        (r"\boxed{94}", "20+64=84.", ["reasoning"]),
        (r"84 \boxed{94}", "=84", ["text", "reasoning"]),
        ("so 84", "", ["text"]),
        (r"\boxed{94}", "184, 840 and 1840", []),  # only within longer numbers
        (r"\boxed{94}", "84.5, 3.84", []),
        (r"84. \boxed{94}", "", ["text"]),
        (r"\boxed{84}", "84", []),  # adopted
    ],
)
def test_a_right_result_that_was_not_adopted_is_found_at_digit_boundaries(text, reasoning, places):
    assert score(text, reasoning=reasoning)["right_in_text"] == places


def test_figures_are_counted_by_hand_and_an_api_error_is_in_the_count_of_its_own(tmp_path):
    problems = [Sum("20", "64")] * 4 + [Sum("123", "456")] * 3
    adding: Benchmark = benchmark(*problems)
    engine = Fixed(
        Completion(r"\boxed{84}", 40, 10, 1.0, "stop"),
        Completion(r"<think>84, or \boxed{94}</think>\boxed{85}", 40, 20, 2.0, "stop"),
        Completion(r"84, as in \boxed{2}", 40, 10, 3.0, "stop"),
        None,
        Completion("579", 40, 10, 4.0, "stop"),
        Completion("1 2", 40, 30, 5.0, "length"),
        Completion(r"\boxed{597}", 40, 10, 6.0, "stop"),
    )
    run = Run.open(tmp_path / "run", "name: x\n")
    samples = measure(adding, engine, run)
    assert [sample.remarks.get("outcome") for sample in samples] == [
        "correct",
        "carry_1d",
        "value_nd",
        None,
        "parse_error",
        "parse_error",
        "order_2d",
    ]
    assert [sample.index for sample in parse_errors(samples)] == [4, 5]

    summary = adding.summarize(samples).to_json()
    assert json.loads(json.dumps(summary)) == summary
    assert adding.summarize(read_samples(run)).to_json() == summary
    assert (summary["asked"], summary["answered"], summary["api_errors"]) == (7, 6, 1)
    assert (summary["success_rate"]["strict"]["value"], summary["success_rate"]["strict"]["n"]) == (1 / 6, 6)
    assert summary["success_rate"]["loose"]["value"] == 2 / 6
    assert summary["success_rate_of_asked"]["strict"]["value"] == 1 / 7
    assert summary["outcomes"] == {
        "correct": 1,
        "carry_1d": 1,
        "sub_1d": 0,
        "order_2d": 1,
        "value_nd": 1,
        "parse_error": 2,
    }
    assert summary["parse_errors"] == {"no_box": 1, "empty_box": 0, "not_an_integer": 0, "truncated": 1}
    assert summary["flags"] == {"unit_step": 1, "echoes_example": 1}
    # Found in the thoughts of the second, and in the text of the third and the fifth.
    assert summary["right_in_text"] == {"text": 2, "reasoning": 1, "anywhere": 3}
    assert summary["seconds"]["total"] == 21
    assert summary["tokens"] == {"prompt": 240, "completion": 90}
    assert [summary["by_digits"][n]["api_errors"] for n in "23"] == [1, 0]
    two, three = summary["by_digits"]["2"], summary["by_digits"]["3"]
    assert (two["strict"]["value"], two["loose"]["value"], two["strict"]["n"]) == (1 / 3, 1 / 3, 3)
    assert (three["strict"]["value"], three["loose"]["value"], three["strict"]["n"]) == (0, 1 / 3, 3)
    assert two["outcomes"]["carry_1d"] == three["outcomes"]["order_2d"] == 1
    assert three["outcome_shares"]["parse_error"]["value"] == 2 / 3
