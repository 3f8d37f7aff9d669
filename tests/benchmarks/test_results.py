import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.results import VERSION, Reading, Sample, Sum, Summary, read_summary
from lab.engines.engine import Completion
from lab.errors import RunError
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate
from lab.runs import Run

DONE = Completion(" 12", 40, 3, 0.5, "stop")
numbers = st.floats(allow_nan=False)
estimates = st.builds(Estimate, numbers, numbers, numbers, st.integers(0, 10**6))
nupa_readings = st.builds(
    Reading, st.none() | st.text(), st.booleans(), st.floats(0, 1), st.integers(0, 99), st.none() | st.text()
)
sum_readings = st.builds(Reading, st.none() | st.text(), st.booleans(), st.none(), st.none(), st.none())
problems = st.builds(Problem, st.text(), st.text(), st.text(), st.none() | st.text(), st.text(), st.integers(1, 99))
sums = st.builds(Sum, st.integers(0, 10**30).map(str), st.integers(0, 10**30).map(str))


def both(readings):
    return st.fixed_dictionaries({"strict": readings, "loose": readings}) | st.just({})


samples = st.one_of(
    st.builds(Sample, st.integers(), problems, st.text(), st.just(DONE), both(nupa_readings), st.just({})),
    st.builds(Sample, st.integers(), problems, st.text(), st.just(DONE), st.fixed_dictionaries({"": nupa_readings})),
    st.builds(Sample, st.integers(), sums, st.text(), st.just(DONE), both(sum_readings), st.just({"outcome": "right"})),
)


@given(samples)
def test_a_sample_is_the_same_after_json(sample):
    assert Sample.from_json(json.loads(json.dumps(sample.to_json()))) == sample


@given(estimates)
def test_an_estimate_is_the_same_after_json_but_that_an_infinite_bound_loses_its_side(estimate):
    read = Estimate.from_json(json.loads(json.dumps(estimate.to_json(), allow_nan=False)))
    for before, after in zip(estimate, read, strict=True):
        assert after == before or (math.isinf(before) and math.isinf(after))


def test_a_line_that_an_earlier_version_wrote_is_read():
    line = (
        '{"index": 3, "model": "m", "task": "add", "representation": "integer", "a": "5", "b": "7", "answer": "12", '
        '"length": 1, "prompt": "5 + 7 =", "text": " 12", "prompt_tokens": 40, "completion_tokens": 3, "seconds": 0.5, '
        '"finish_reason": "stop", "reasoning": "", "api_error": "", '
        '"strict": {"given": "12", "exact_match": true, "digit_match": 1.0, "dlength": 0, "error": null}}'
    )
    sample = Sample.from_json(json.loads(line))
    assert sample.question == Problem("add", "integer", "5", "7", "12", 1)
    assert (sample.completion, sample.right, sample.task) == (DONE, True, "add_integer")
    assert sample.readings["strict"] == Reading("12", True, 1.0, 0)


def test_the_samples_of_a_sum_keep_the_layout_of_their_file():
    sample = Sample(0, Sum("12", "9"), "p", DONE, {"strict": Reading("21", True), "loose": Reading("21", True)})
    written = sample.to_json()
    assert {name: written[name] for name in ("int1", "int2", "answer", "digits")} == {
        "int1": "12",
        "int2": "9",
        "answer": "21",
        "digits": 2,
    }
    assert written["strict"] == {"given": "21", "success": True}


@pytest.mark.parametrize("record", [{}, {"index": 1, "prompt": "p"}, {"task": "add"}])
def test_what_is_no_sample_is_refused(record):
    with pytest.raises(RunError, match="not a sample"):
        Sample.from_json(record)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"version": VERSION + 1}, "another version"),
        ([], "another version"),
        ({"version": VERSION, "nupa": {"add_integer": {"ranges": 3}}}, "nupa.add_integer.ranges"),
    ],
)
def test_a_summary_that_cannot_be_used_is_refused_in_one_line(read, said, tmp_path):
    with Run.open(tmp_path / "run", "name: x\n") as run:
        run.write_json("summary", read)
    with pytest.raises(RunError, match=said) as error:
        read_summary(run)
    assert str(error.value).count("\n") == 0


def test_an_empty_summary_says_its_version_alone():
    assert Summary(version=VERSION).to_json() == {"version": VERSION}
