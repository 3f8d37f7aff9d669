from pathlib import Path

import pytest
import torch

from experiments.shared.one_pass import likeliest, right_tokens
from lab.benchmarks.benchmark import ask
from lab.benchmarks.length_curves.scoring import LengthCurves
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.engines.plain import PlainEngine
from lab.models import sources
from lab.models.loading import load_scratch
from lab.numbers.additions import addition
from lab.numbers.sampling import Cell, block
from lab.numbers.tasks import TASKS
from lab.text.notation import Notation
from lab.text.running_totals import RunningTotals
from tests.from_scratch import built


@pytest.mark.parametrize("digits", [20, 30])
def test_one_pass_finds_the_first_wrong_digit_that_generation_writes(digits):
    run = load_scratch(Path(sources.resolve("zoo/adds-10-without-locality")))
    problems = [addition("carries", digits, 0, index) for index in range(12)]
    engine = PlainEngine(run.model, run.tokenizer, 12)
    samples = [sample for batch in ask(LengthCurves(problems, run.notation), engine) for sample in batch]

    def first_error(wanted: str, given: str) -> int | None:
        pairs = zip(f"{wanted[::-1]}.", f"{given[::-1]}.", strict=False)  # "." marks the end of the answer
        return next((place for place, (right, written) in enumerate(pairs) if right != written), None)

    written = {sample.index: first_error(sample.problem.answer, sample.readings[""].given or "") for sample in samples}
    assert right_tokens(run, problems) == [written[index] for index in range(12)]
    assert set(written.values()) != {None}


WINDOW = {"window": {"reach": 1}, "relative_keys": {}}


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("segments", [True, False])
def test_the_pieces_of_a_pass_are_what_a_window_sees(layers, segments):
    notation = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASKS["add_integer"]])
    parts = {"coupled_ids": {"largest": 512}, **WINDOW, **({"segments": {}} if segments else {})}
    model = built(notation.vocabulary, parts, size="0.2M", layers=layers)
    for weight in model.parameters():
        weight.data *= 5  # so that what is seen decides what is likeliest
    item = addition("carries", 180, 0, 0)
    words = ["<begin>", *notation.question(item), *notation.answer(item)]
    ids_T = torch.tensor([notation.vocabulary.index(word) for word in words])
    with torch.inference_mode():
        assert likeliest(model, ids_T) == model(ids_T[None]).logits[0].argmax(-1).tolist()


def test_the_pieces_of_a_pass_over_running_totals_are_what_a_window_sees_in_both_directions():
    product = TASKS["multiply_hard_integer"]
    notation = RunningTotals([product])
    model = built(notation.vocabulary, {"grid_ids": {}, **WINDOW, "segments": {}}, size="0.2M", layers=2)
    for weight in model.parameters():
        weight.data *= 5
    item = block(Cell(product, 20), "train", 0, 0)[0]
    words = ["<begin>", *notation.question(item), *notation.answer(item)]
    ids_T = torch.tensor([notation.vocabulary.index(word) for word in words])
    with torch.inference_mode():
        whole = model(ids_T[None]).logits[0].argmax(-1).tolist()
    assert likeliest(model, ids_T) == whole
    assert len(set(whole)) > 3
