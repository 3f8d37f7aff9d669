"""How fast a model from scratch trains: with the head and the last feed-forward at labels alone, with torch.compile,
and with attention that is not fused, which the lab uses for compiled training on a CPU.

    python -m benchmarks.speed_pretraining [steps] [config ...]

The baseline is the usual way: logits of all tokens, and a cross-entropy that ignores tokens without a label. All
variants start from the same weights and train on the same batches, in the dtype that training uses on this machine, and
their losses are printed beside each other. A compiled model is timed after ten steps, in which it meets most of the
lengths that batches have.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.config.schema import chosen
from lab.errors import exit_cleanly
from lab.models import pretrained
from lab.scratch import llama as scratch
from lab.text.examples import IGNORED
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from lab.tune.sequences import SequenceCollator, sequence_loss, sequence_sets
from lab.tune.throughput import matrix_product_rate, step_operations

CONFIGS = Path(__file__).parents[1] / "configs"
WARM_UP = 10

Loss = Callable[[torch.nn.Module, dict[str, torch.Tensor]], torch.Tensor]


def plain_loss(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    logits_RTV = model(input_ids=inputs["input_ids"], position_ids=inputs["position_ids"]).logits
    labels_RT = inputs["shift_labels"]
    return cross_entropy(logits_RTV.flatten(0, 1).float(), labels_RT.flatten(), ignore_index=IGNORED, reduction="sum")


@exit_cleanly
def main(arguments: list[str]) -> None:
    steps = int(arguments[0]) if arguments else 20
    for name in arguments[1:] or ["scratch_add", "packing", "locality"]:
        config = load(PretrainConfig, CONFIGS / f"{name}.yaml", [])
        notation = Notation(config.tokenizer, config.format, chosen(config.data.tasks))
        sets = sequence_sets(config.data, config.training, config.seed, notation, build_tokenizer(notation.vocabulary))
        model = scratch.build(config, notation.vocabulary)
        collate = SequenceCollator(model, config.data.packing, config.seed)
        device = pretrained.resolve_device(config.model)
        size = config.training.micro_batch_size
        batches = []
        for step in range(WARM_UP + steps):
            inputs = collate(sets.train.rows(range(step * size, (step + 1) * size)))
            batches.append({key: value.to(device) for key, value in inputs.items()})
        dtype = pretrained.resolve_dtype(config.model)
        rate = matrix_product_rate(device, dtype)
        print(f"{name}: {dtype}, {device}")
        baseline = 0.0
        for label, loss, compiled, attention in (
            ("all tokens", plain_loss, False, "sdpa"),
            ("labels alone", sequence_loss, False, "sdpa"),
            ("labels alone, compiled", sequence_loss, True, "sdpa"),
            ("labels alone, compiled, attention not fused", sequence_loss, True, "eager"),
        ):
            model = scratch.build(config, notation.vocabulary).to(device)  # type: ignore[arg-type]
            model.set_attn_implementation(attention)
            torch.compiler.reset()
            called = torch.compile(model) if compiled else model
            seconds, losses = timed(model, called, loss, batches, dtype)  # type: ignore[arg-type]
            samples = size / sorted(seconds)[len(seconds) // 2]
            baseline = baseline or samples
            operations = step_operations(model, batches[0]) * samples / size
            print(f"{name}, {label}: {samples:,.0f} samples/s, {samples / baseline:.2f} x; "
                  f"{operations / 1e9:.1f} of {rate / 1e9:.1f} GFLOP/s; loss {losses[-1]:.5f}")  # fmt: skip


def timed(
    model: torch.nn.Module,
    called: torch.nn.Module,
    loss: Loss,
    batches: list[dict[str, torch.Tensor]],
    dtype: torch.dtype,
) -> tuple[list[float], list[float]]:
    """Seconds and mean loss of each step after the warm-up: forward, backward, and AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seconds, losses = [], []
    for inputs in batches:
        began = time.perf_counter()
        with torch.autocast(inputs["input_ids"].device.type, dtype, enabled=dtype == torch.bfloat16):
            mean = loss(called, inputs) / (inputs["shift_labels"] != IGNORED).sum()
        mean.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean.item())
        seconds.append(time.perf_counter() - began)
    return seconds[WARM_UP:], losses[WARM_UP:]


if __name__ == "__main__":
    main(sys.argv[1:])
