"""The compiled gradients of tiny adders against torch's."""

import shutil

import pytest
import torch

from experiments.adder_plain import CompiledModel
from lab.smallest_adder.config import AdderConfig, GroupConfig, TinyAdderConfig
from lab.smallest_adder.groups import Batch, BatchedModel, initial_rows
from lab.smallest_adder.models import build
from lab.smallest_adder.rows import batch

pytestmark = pytest.mark.slow
LEAST = TinyAdderConfig(
    width=3, heads=1, inner=2, values=1, period=(10, 14), tied=True, gains="last", gain=3, signs=True, height=0.7,
    ties=["gate", "down"],
)  # fmt: skip
OTHERS = {"values": 2, "inner": 3, "ties": [], "gains": "all", "period": 12.0}


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("changes", [{}, OTHERS, {"gains": "none", "width": 2, "height": 0, "ties": ["down"]}])
def test_compiled_losses_and_gradients_are_those_of_the_model(changes):
    model = LEAST.model_copy(update=changes)
    batched, compiled = BatchedModel(build(model)), CompiledModel(build(model))
    rows_SP = initial_rows(AdderConfig(name="x", model=model, group=GroupConfig(seeds=18)))
    rows_SP = rows_SP + 0.1 * torch.randn(rows_SP.shape, generator=torch.Generator().manual_seed(0))
    problems = Batch.of(batch("train", 0, 0, 8, 1.0))
    for one, other in zip(compiled.gradients(rows_SP, problems), batched.gradients(rows_SP, problems), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
    for one, other in zip(compiled.measure(rows_SP, problems), batched.measure(rows_SP, problems), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
