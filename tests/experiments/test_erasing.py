"""The engine that forgets, against the plain loop, with models of random weights."""

import importlib
from pathlib import Path

import pytest
import torch

from experiments.shared.erasing import ErasingEngine
from lab.config.notation import FormatConfig
from lab.config.schema import RulesConfig
from lab.engines.engine import Request
from lab.engines.plain import PlainEngine
from lab.errors import ModelError
from lab.numbers.sampling import Cell, block, problem
from lab.numbers.tasks import TASKS
from lab.scratch.llama import NumberLlama
from lab.text.rule_notation import RuleNotation
from lab.text.running_totals import RunningTotals
from lab.text.scratch_tokenizer import build_tokenizer
from tests.from_scratch import built

ROOT = Path(__file__).parents[2]
ADD = TASKS["add_integer"]
NOTATION = RuleNotation(RulesConfig(unit=1, detail="bare"), FormatConfig(reverse="integer"), [Cell(ADD, 3)])
TOKENIZER = build_tokenizer(NOTATION.vocabulary)
PARTS = {"coupled_ids": {"largest": 256}, "relative_keys": {}, "segments": {}}


def model(seed: int, **parts: dict) -> NumberLlama:
    made = built(NOTATION.vocabulary, {**PARTS, **parts}, seed, size="0.2M", layers=2)
    for weight in made.parameters():
        if weight.ndim == 2:  # so that different rows lead to different words
            weight.data.mul_(8)
    return made


def requests(length: int, count: int = 6, budget: int = 30) -> list[Request]:
    """Questions with the first half of their traces, so that there is something to forget."""
    found = []
    for index in range(count):
        item = problem(Cell(ADD, length), "train", 0, index)
        answer = NOTATION.answer(item)
        found.append(Request(" ".join([*NOTATION.question(item), *answer[: len(answer) // 2]]), budget, "add"))
    return found


def told(engine, asked):
    found = {i: item for batch in engine.generate(asked) for i, item in batch.items()}
    return [(found[i].text, found[i].completion_tokens, found[i].finish_reason) for i in range(len(asked))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [1, 2])
def test_what_is_written_is_what_the_whole_row_would_lead_to(seed, window):
    made, asked = model(seed, window={"reach": window}), [*requests(3), *requests(9)]
    plain, erasing = PlainEngine(made, TOKENIZER, 4, by_group=True), ErasingEngine(made, TOKENIZER, 4)
    written = told(erasing, asked)
    assert written == told(plain, asked)
    assert len({text for text, _, _ in written}) > 3
    assert erasing.read < erasing.whole_rows


def test_a_token_reads_no_more_in_long_numbers_than_in_short_ones():
    engine = ErasingEngine(model(0, window={"reach": 1}), TOKENIZER, 4)

    def read(length: int) -> int:
        item = next(
            each for each in block(Cell(ADD, length), "train", 0, 0) if len(each.a) == len(each.b or "") == length
        )
        lines = " ".join(NOTATION.answer(item)).split(" ; ")[: length // 2]
        row = TOKENIZER.encode(" ".join([*NOTATION.question(item), *" ; ".join([*lines, ""]).split()]))
        return len(engine._seen(torch.tensor(row))[1])

    assert read(60) == read(10)


@pytest.mark.parametrize("settings", [{}, {"window": {}, "stick_breaking": {}}])
def test_a_model_that_sees_everything_is_refused(settings):
    with pytest.raises(ModelError, match=r"needs parts\.window"):
        ErasingEngine(model(0, **settings), TOKENIZER, 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_running_totals_are_written_the_same_without_the_rows_and_places_that_no_head_sees(seed):
    notation = RunningTotals([TASKS["multiply_hard_integer"]])
    parts = {"grid_ids": {}, "relative_keys": {}, "window": {"reach": 1}, "segments": {}}
    made = built(notation.vocabulary, parts, seed, size="0.2M", layers=2)
    tokenizer = build_tokenizer(notation.vocabulary)
    for weight in made.parameters():
        if weight.ndim == 2:
            weight.data.mul_(8)
    items = block(Cell(TASKS["multiply_hard_integer"], 8), "train", 0, 0)[:4]
    asked = [Request(" ".join([*notation.question(item), *notation.answer(item)[:90]]), 30, "") for item in items]
    erasing = ErasingEngine(made, tokenizer, 4)
    assert told(erasing, asked) == told(PlainEngine(made, tokenizer, 4, by_group=True), asked)
    assert erasing.read < erasing.whole_rows / 2


@pytest.mark.slow
def test_a_run_tells_what_its_model_reads_again(tmp_path, capsys):
    main = importlib.import_module("experiments.rules-through-a-window.run").main

    from lab.pretrain import main as pretrain

    small = ["model={size: 0.2M, layers: 2, device: cpu}", "evaluation={lengths: [4], problems_per_length: 2}"]
    short = ["training={max_steps: 2, warmup_steps: 1, log_every: 1, evaluate_every: 1, valid_problems: 4}"]
    pretrain([str(ROOT / "configs" / "rules_window.yaml"), *small, *short, f"output={tmp_path}"])
    capsys.readouterr()
    main([str(tmp_path / "rules_window")])
    cells = capsys.readouterr().out.splitlines()[-1].replace(",", "").strip("| ").split("|")
    answers, right, written, read, whole = map(int, cells[1:])
    assert answers == 4
    assert right == 0
    assert 0 < written < read < whole
