"""The verdict on a declared adder: the growing loop, and what attention does."""

import json
from pathlib import Path

import pytest

from lab.adders.judge import Runner, judge
from lab.adders.loop import read_answers
from lab.adders.problems import DIGITS, EDGE_CASES, few_wrong, problems
from lab.adders.rows import prompts
from lab.adders.spec import Adder, check, load
from lab.adders.verdict import Verdict

ROOT = Path(__file__).parents[2]
ADDERS = {path.stem: path for path in (ROOT / "experiments").glob("*/adder_*.json")}


def adder(name: str, **changes: object) -> Adder:
    return check(json.loads(ADDERS[f"adder_{name}"].read_text()) | changes)


@pytest.mark.parametrize(("name", "size", "kind"), [("47", 47, "transformer"), ("14", 14, "convolution"), ("8", 8, "convolution"), ("7", 7, "convolution")])  # fmt: skip  # noqa: E501
def test_the_records_qualify_with_their_number_of_parameters_and_their_kind(name, size, kind):
    verdict = judge(adder(name), number=2000)
    assert verdict.qualified
    assert (verdict.parameters, verdict.looks.kind) == (size, kind)
    assert (verdict.looks.kind == "transformer") == (verdict.looks.moves > 0.01)


def test_the_adder_by_hand_is_right_in_every_problem():
    verdict = judge(load(ADDERS["adder_by_hand"]), number=1000)
    assert (verdict.right, verdict.problems, verdict.parameters) == (1010, 1010, 3)


def test_what_attention_does_is_the_same_in_each_verdict():
    one, other = (judge(adder("47"), seed, 10).looks for seed in (1, 2))
    assert one == other


def test_attention_that_weighs_all_tokens_alike_is_pooling_and_no_attention_is_an_mlp():
    zeros = {"embedding": "e", "layers": [{"attention": {"q": {"b": [0]}, "k": {"b": [0]}}}], "head": [[1]] * 10}
    value = {"numbers": {"e": [[float(v)] for v in range(10)]}, "prompt": ["a9..0", "b9..0"], "answer": ["s10..0"]}
    pooling = judge(check(value | {"model": zeros}), number=50)
    assert (pooling.looks.kind, pooling.qualified) == ("pooling", False)
    mlp = judge(check(value | {"model": zeros | {"layers": []}}), number=50)
    assert (mlp.looks.kind, mlp.objections) == ("mlp", ["has no attention"])


def test_an_adder_that_takes_too_long_gets_a_verdict():
    verdict = judge(adder("47"), seconds=0)
    assert verdict.objections == ["no verdict within 0 seconds"]
    assert not verdict.qualified


def test_numbers_that_overflow_are_wrong_and_no_error():
    broken = adder("47", numbers=json.loads(ADDERS["adder_47"].read_text())["numbers"] | {"output": [[3e38], [3e38]]})
    assert judge(broken, number=20).right == 0


def test_double_precision_is_computed_as_declared():
    assert Runner(adder("47", precision="float64")).add([(1, 2)]) == [3]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (["a9..0", 10, "b9..0", 11], [*(0, 0, 0, 0, 0, 0, 0, 1, 2, 3), 10, *(0, 0, 0, 0, 0, 0, 0, 0, 4, 5), 11]),
        (["a0", "b0", "a1..9", "b1..12"], [3, 5, 2, 1, *[0] * 7, 4, *[0] * 11]),
    ],
)
def test_a_template_gives_order_padding_and_separators(prompt, expected):
    assert prompts(
        adder("47", prompt=[*prompt], vocabulary=None) if max(expected) < 10 else with_tokens(prompt), [(123, 45)]
    ).tolist() == [expected]


def with_tokens(prompt: list) -> Adder:
    value = {"numbers": {"e": [[float(v)] for v in range(14)]}, "model": {"embedding": "e", "layers": [], "head": "e"}}
    return check(value | {"prompt": prompt, "answer": ["s10..0", 12], "digits": list(range(10))})


def test_an_answer_is_read_by_its_template_and_a_token_that_does_not_fit_makes_it_wrong():
    import numpy as np

    read = with_tokens(["a9..0", "b9..0"])
    digits = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1]
    rows = [[*digits, 12], [*digits, 3], [*digits[:-1], 12, 12], [*digits[:-1], -1, 12]]
    assert read_answers(read, np.array(rows)) == [1234567891, None, None, None]


def test_the_problems_are_the_edge_cases_and_pairs_of_the_seed():
    one, again, other = problems(5, 100), problems(5, 100), problems(6, 100)
    assert one == again != other
    assert one[:10] == list(EDGE_CASES) == other[:10]
    assert all(0 <= number < 10**DIGITS for pair in one for number in pair)
    assert [few_wrong(right, 10_010) for right in (9_909, 9_910)] == [False, True]


def test_a_verdict_survives_json():
    verdict = judge(adder("47"), 3, 10)
    assert Verdict.read(json.loads(json.dumps(verdict.plainly()))) == verdict
