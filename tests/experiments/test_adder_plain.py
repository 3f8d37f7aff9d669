"""The compiled gradients of tiny adders against torch's."""

import importlib
import shutil

import pytest
import torch

from lab.adders.config import AdderConfig
from lab.adders.groups import Batch, BatchedModel, initial_rows
from lab.adders.rows import batch
from lab.config.loading import load

script = importlib.import_module("experiments.plain-adder.run")
ROOT = script.ROOT
CompiledModel = script.CompiledModel
block = script.block


pytestmark = pytest.mark.slow
GAINS = [f"numbers.gain_{number}={{kind: normal, shape: [3], mean: 1, std: 0}}" for number in (0, 1)]
OTHER = (*block(3, 3, (), 2), "model.layers=[{attention: {norm: {kind: rms, gain: gain_0}, q: query, k: key, v: value, o: output}, "  # noqa: E501
         "ffn: {norm: {kind: rms, gain: gain_1}, act: silu, gate: gate, up: up, down: down}}]")  # fmt: skip


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("words", [(), (*OTHER, *GAINS), block(2, ties=("down",))])
def test_compiled_losses_and_gradients_are_those_of_the_model(words):
    given = [*words, "group={seeds: 18, halvings: []}"]
    config = load(AdderConfig, ROOT / "configs" / "adder_plain.yaml", given)
    batched, compiled = BatchedModel(config), CompiledModel(config)
    rows_SP = initial_rows(config)
    rows_SP = rows_SP + 0.1 * torch.randn(rows_SP.shape, generator=torch.Generator().manual_seed(0))
    problems = Batch.of(batch(batched.adder, "train", 0, 0, 8, 1.0))
    for one, other in zip(compiled.gradients(rows_SP, problems), batched.gradients(rows_SP, problems), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    for one, other in zip(compiled.measure(rows_SP, problems), batched.measure(rows_SP, problems), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
