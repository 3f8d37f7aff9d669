"""A part and a kind of position ids of one's own, each one file outside the lab: put into a pretrained model and into
one from scratch, trained, saved and opened again."""

import sys
from pathlib import Path

import pytest
import torch

import lab
from lab.config.finetuning import Swap
from lab.config.schema import ModelConfig
from lab.engines.engine import Request
from lab.engines.local import LocalEngine
from lab.engines.plain import PlainEngine
from lab.errors import ModelError
from lab.finetune import main as finetune
from lab.models import swaps
from lab.models.loading import load_scratch
from lab.pretrain import main as pretrain
from lab.trees.layout import tree_inputs
from lab.trees.prefix_tree import PrefixTree

ROOT = Path(__file__).parents[2]
PARITY = '''
"""A learned bias of every head towards digits of the same parity as the query's own digit."""

import numpy as np
import torch
from torch import nn

from lab.config.parts import PartConfig
from lab.parts.part import Act, Part


class ParityConfig(PartConfig, kind="parity"):
    first: float = 0.0
    """The bias before training."""

    def build(self, model, others):
        return Parity(self, model.num_attention_heads)


class Parity(Part):
    pairs = biases = True

    def __init__(self, config, heads):
        super().__init__(config)
        self.bias = nn.Parameter(torch.empty(heads))

    def reset(self):
        nn.init.constant_(self.bias, self.config.first)

    def inputs(self, rows):
        parity = [np.where(rows.words.are_digits(row), rows.words.digits(row) % 2, -1) for row in rows.wholes]
        asked_BQ, seen_BK = rows.of_queries(parity), rows.of_keys(parity)
        return {"same_BQK": (asked_BQ[:, :, None] == seen_BK[:, None]) & (asked_BQ >= 0)[:, :, None]}

    def act(self, inputs, step):
        return Biased(self.bias, inputs["same_BQK"])


class Biased(Act):
    def __init__(self, bias, same):
        self.bias, self.same = bias, same

    def mask(self, layer, mask):
        return mask + self.bias[:, None, None] * self.same[:, None].to(mask.dtype)
'''
RESTART = '''
"""Position ids that start again from 0 at the first digit of every number."""

import numpy as np

from lab.config.parts import PartConfig
from lab.parts.part import Part


class RestartConfig(PartConfig, kind="restart"):
    def build(self, model, others):
        return Restart(self)


class Restart(Part):
    def position_ids(self, rows):
        return rows.of_queries([restarted(rows.words.are_digits(row)) for row in rows.wholes])


def restarted(digits):
    starts = digits & ~np.append(False, digits[:-1])
    at = np.arange(len(digits))
    return at - np.maximum.accumulate(np.where(starts, at, 0))
'''
OWN = {"uses": ["own_parity", "own_restart"], "parts": {"parity": {"first": 0.7}, "restart": {}}}


@pytest.fixture(autouse=True)
def own_modules(tmp_path, monkeypatch):
    for name, text in (("own_parity", PARITY), ("own_restart", RESTART)):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))


def opened(toy_model):
    return swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), Swap.model_validate(OWN))


def test_position_ids_of_ones_own_restart_at_numbers(toy_model):
    model, tokenizer = opened(toy_model)
    found = model.part_inputs([tokenizer.encode("a 12+3")])
    assert found.position_ids.tolist() == [[0, 1, 0, 1, 2, 0]]
    assert found.parts["parity"]["same_BQK"][0, 5].tolist() == [False, False, True, False, False, True]


def test_tokens_after_a_cache_are_refused_if_a_part_decides_their_position_ids(toy_model):
    restart = {**OWN, "parts": {"restart": {}}}
    model, tokenizer = swaps.load(
        ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), Swap.model_validate(restart)
    )
    cache = model(torch.tensor([tokenizer.encode("12 + ")]), use_cache=True).past_key_values
    with pytest.raises(ModelError, match="computed from whole rows"):
        model(torch.tensor([tokenizer.encode("3")]), past_key_values=cache)


def test_own_parts_have_the_logits_of_whole_rows_in_a_tree_and_with_a_cache(toy_model):
    model, tokenizer = opened(toy_model)
    assert model.parts["parity"].bias.tolist() == pytest.approx([0.7] * 4)
    tree = PrefixTree([tokenizer.encode(text) for text in ("12 + 345 = 1", "12 + 347 = 82", "12 + 9 = 4")])
    with torch.inference_mode():
        logits = model(**tree.inputs() | tree_inputs(model, tree), use_cache=False).logits[0]
        for path in tree.paths:
            alone = model(torch.tensor([[tree.tokens[node] for node in path]])).logits[0]
            torch.testing.assert_close(logits[path], alone, atol=1e-4, rtol=1e-4)
    requests = [Request(text, 6) for text in ("12 + 345 =", "7 + 8 =", "x 90817 and 33")]
    engines = LocalEngine(model, tokenizer, 2), PlainEngine(model, tokenizer, 2)
    ours, theirs = ({i: c.text for done in engine.generate(requests) for i, c in done.items()} for engine in engines)
    assert ours == theirs


@pytest.mark.slow
def test_own_parts_are_trained_saved_and_opened_again_by_the_run_alone(toy_model, tmp_path):
    smoke = ["training={max_steps: 2, batch_size: 4, micro_batch_size: 2, log_every: 1, evaluate_every: 1}"]
    smoke += ["training.warmup_steps=1", "training.valid_problems=4", "evaluation.problems_per_range=2"]
    smoke += ["data.tasks=[add_integer]", "data.lengths={hard: [1, 3], easy: [1, 5]}", "adapter.rank=2"]
    smoke += ["evaluation.lengths={hard: [1, 5], easy: [5, 5]}", f"model.name={toy_model}", "model.device=cpu"]
    own = ["uses=[own_parity, own_restart]", "parts={parity: {}, restart: {}}"]
    finetune([str(ROOT / "configs" / "smollm2_lora.yaml"), f"output={tmp_path}", "name=run", *smoke, *own])
    model = lab.load(str(tmp_path / "run"))
    base = next(module for module in model.engine.model.modules() if hasattr(module, "part_inputs"))
    assert base.parts["parity"].bias.abs().max() > 0.01  # it began at 0 and learned at its own rate
    assert model.ask("12 + 34") == lab.load(str(tmp_path / "run")).ask("12 + 34")


@pytest.mark.slow
def test_the_same_parts_are_trained_from_scratch_and_opened_again_by_the_run_alone(tmp_path):
    small = [
        "model={size: 0.2M, device: cpu}",
        "data.lengths=[1, 3]",
        "evaluation={lengths: [1, 3], while_training: []}",
    ]
    small += ["training={max_steps: 2, batch_size: 4, micro_batch_size: 2, log_every: 1, evaluate_every: 1}"]
    small += ["training.warmup_steps=1", "training.valid_problems=4", "evaluation.problems_per_length=4"]
    own = ["uses=[own_parity, own_restart]", "parts={parity: {}, restart: {}}"]
    pretrain([str(ROOT / "configs" / "scratch_add.yaml"), f"output={tmp_path}", "name=run", *small, *own])
    run = load_scratch(tmp_path / "run")
    assert run.model.parts["parity"].bias.abs().max() > 0
    ids = torch.tensor([run.tokenizer.encode("1 2 <add_integer> 3 4 5 =")])
    assert run.model.positions(ids).tolist() == [[0, 0, 1, 2, 0, 1, 2, 3]]
    alike = {"attention_mask": torch.ones_like(ids), "do_sample": False, "max_new_tokens": 6, "pad_token_id": 0}
    with_cache, without = (run.model.generate(ids, use_cache=use_cache, **alike) for use_cache in (True, False))
    assert torch.equal(with_cache, without)
    model = lab.load(str(tmp_path / "run"))
    assert model.ask("12 + 34") == lab.load(str(tmp_path / "run")).ask("12 + 34")
    assert len(lab.evaluate(model, lab.problems("add_integer", digits=3, n=4)).samples) == 4
