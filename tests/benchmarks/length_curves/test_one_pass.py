from pathlib import Path

import pytest

from lab.benchmarks.benchmark import ask
from lab.benchmarks.length_curves.one_pass import right_tokens
from lab.benchmarks.length_curves.scoring import LengthCurves
from lab.inference.plain import PlainEngine
from lab.models import scratch_runs, zoo
from lab.numbers.additions import addition


@pytest.mark.parametrize("digits", [10, 20, 30])
def test_one_pass_finds_the_first_wrong_digit_that_generation_writes(digits):
    run = scratch_runs.load(Path(zoo.resolve("zoo/adds-10-without-locality")))
    problems = [addition("carries", digits, 0, index) for index in range(12)]
    engine = PlainEngine(run.model, run.tokenizer, 12)
    samples = [sample for batch in ask(LengthCurves(problems, run.notation), engine) for sample in batch]

    def first_error(wanted: str, given: str) -> int | None:
        pairs = zip(f"{wanted[::-1]}.", f"{given[::-1]}.", strict=False)  # the point is the answer's end
        return next((place for place, (right, written) in enumerate(pairs) if right != written), None)

    written = {sample.index: first_error(sample.problem.answer, sample.readings[""].given or "") for sample in samples}
    assert right_tokens(run, problems) == [written[index] for index in range(12)]
    assert (None in written.values()) == (digits == 10)
