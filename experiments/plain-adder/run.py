"""How small can a plain block be and still learn to add? It is Llama's layer, all its numbers learned by AdamW.

    python -m experiments.plain-adder.run [seeds=0,1,2] [only=LABEL/...] [key=value ...]

Each size has a run of `lab adder train` for each group of seeds, named adder_plain_<label>_<seed>. Finished runs are
left as they are. The table shows the finished runs of the given seeds, for all sizes. In each group, the seed and the
step with the best validation are kept, and tested on the public test. A group has learned if 99.9 % of this test is
right. Gradients come from adder_plain.c, compiled by `cc`, which computes the same as the lab's model, several times as
fast (a test compares the two).
"""

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch

from experiments.shared.arguments import own_and_others, some_of, whole_numbers
from experiments.shared.learned_by_size import learned_by_size
from experiments.shared.publishing import beside_runs
from lab.adders.config import AdderConfig
from lab.adders.groups import Batch, BatchedModel
from lab.adders.training import train_adder
from lab.config.loading import load
from lab.drawing.tables import Table, percent
from lab.errors import ConfigError, exit_cleanly
from lab.numbers.statistics import wilson
from lab.runs import Run

ROOT = Path(__file__).parents[2]
LEARNED = 0.999


def block(width: int = 3, inner: int = 2, ties: tuple[str, ...] = ("gate", "down"), values: int = 1) -> tuple[str, ...]:
    """The changes to configs/adder_plain.yaml that make another block.

    A gate that is tied is the up projection; a tied down projection is minus its transpose. A block of width 2 has no
    room for a direction that all digits share, so its queries and keys begin at random.
    """
    height, asking = (0.7, "along") if width > 2 else (0, "normal")
    shapes = {"up": [inner, width], "gate": [inner, width], "down": [width, inner]}
    words = [f"numbers.digits={{kind: arc, shape: [10, {width}], height: {height}}}", f"numbers.gain_2.shape=[{width}]"]
    words += [f"numbers.{name}={{kind: {asking}, shape: [2, {width}], std: 1.5}}" for name in ("query", "key")]
    words += [f"numbers.value.shape=[{values}, {width}]", f"numbers.output.shape=[{width}, {values}]"]
    own = [name for name in shapes if name not in ties]
    words += [f"numbers.{name}={{kind: linear, shape: {shapes[name]}}}" for name in own]
    gate, down = ("up" if "gate" in ties else "gate"), ("-up.T" if "down" in ties else "down")
    attention = "{norm: {kind: rms}, q: query, k: key, v: value, o: output}"
    ffn = f"{{norm: {{kind: rms}}, act: silu, gate: {gate}, up: up, down: {down}}}"
    return (*words, f"model.layers=[{{attention: {attention}, ffn: {ffn}}}]")


LONGER = ("group={seeds: 768, halvings: [[300, 256], [600, 64], [1200, 16]]}", "training.max_steps=90000")
LADDER: dict[str, tuple[str, ...]] = {
    "plain": block(ties=()),
    "down tied": block(ties=("down",)),
    "one unit": block(inner=1, ties=()),
    "gate and down tied": (),
    "tied, one unit": block(inner=1),
    "width 2": (*block(2, ties=()), *LONGER),
    "width 2, down tied": (*block(2, ties=("down",)), *LONGER),
    "width 2, gate and down tied": (*block(2), *LONGER),
}
"""The changes to configs/adder_plain.yaml for each size; largest first. Blocks of width 2 begin with four times as many
seeds, and may train nine times as long."""
SEEDS_AT_ONCE = 16


class CompiledModel(BatchedModel):
    """Many plain blocks whose gradients come from adder_plain.c."""

    ORDER = ("digits", "gain_0", "gain_1", "gain_2", "period", "query", "key", "value", "output", "gate", "up", "down")

    def __init__(self, config: AdderConfig) -> None:
        super().__init__(config)
        shapes = dict(zip(self.names, self.shapes, strict=True))
        attention, rope = config.model.layers[0].attention, config.model.rope
        if (
            set(shapes) - set(self.ORDER)
            or not attention
            or not rope
            or attention.heads != 1
            or len(config.model.layers) > 1
        ):
            raise ConfigError(f"adder_plain.c is for plain blocks of one head, with tables {', '.join(self.ORDER)}")
        inner, width = shapes["up"]
        gains = [name for name in self.ORDER[1:4] if name in shapes]
        sizes = {"D": width, "W": shapes["value"][0], "F": inner, "GAINS": len(gains), "PERIOD": "period" in shapes}
        self.library = compiled({name: int(size) for name, size in sizes.items()})
        self.period = 0.0 if "period" in shapes else float(rope.period)
        parts = dict(zip(self.names, torch.eye(self.parameters).split(self.sizes), strict=True))
        parts.setdefault("gate", parts["up"])
        parts.setdefault("down", -parts["up"].unflatten(0, (inner, width)).transpose(0, 1).flatten(0, 1))
        self.whole_RP = torch.cat([parts[name] for name in self.ORDER if name in parts])
        """The numbers that adder_plain.c takes, as linear combinations of the model's."""
        assert self.library.numbers() == len(self.whole_RP)

    def gradients(self, rows_SP: torch.Tensor, problems: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        losses_S, _, gradients_SP = self.run(rows_SP, problems, True)
        return losses_S, gradients_SP

    def measure(self, rows_SP: torch.Tensor, problems: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        return self.run(rows_SP, problems, False)[:2]

    def run(
        self, rows_SP: torch.Tensor, problems: Batch, back: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Losses (S,), shares of right sums (S,) and gradients (S, P), which are zeros unless `back`."""
        given = [np.ascontiguousarray(part.numpy(), dtype=np.int32) for part in problems]
        found = []
        for part_SP in rows_SP.detach().split(SEEDS_AT_ONCE):
            whole_RS = np.zeros((len(self.whole_RP), SEEDS_AT_ONCE), dtype=np.float32)
            whole_RS[:, :] = (self.whole_RP @ part_SP[-1])[:, None]  # rows that fill up the last part
            whole_RS[:, : len(part_SP)] = self.whole_RP @ part_SP.T
            gradients_RS, (losses_S, right_S) = np.zeros_like(whole_RS), np.zeros((2, SEEDS_AT_ONCE), dtype=np.float32)
            grad = gradients_RS.ctypes if back else None
            arrays = (part.ctypes for part in given)
            count, period = len(given[0]), ctypes.c_float(self.period)
            self.library.adders(whole_RS.ctypes, grad, *arrays, count, period, losses_S.ctypes, right_S.ctypes)
            gradients_SP = torch.from_numpy(gradients_RS).T @ self.whole_RP
            found.append([torch.as_tensor(one)[: len(part_SP)] for one in (losses_S, right_S, gradients_SP)])
        losses_S, right_S, gradients_SP = (torch.cat(parts) for parts in zip(*found, strict=True))
        return losses_S, right_S, gradients_SP


def compiled(sizes: dict[str, int]) -> ctypes.CDLL:
    """The library of adder_plain.c, compiled for a model of these sizes."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "adders.so"
        # what -ffast-math means, without its start-up code, which would make the whole process round tiny numbers to 0
        fast = ["-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math"]
        flags = ["-O3", "-march=native", "-mprefer-vector-width=512", *fast, "-shared", "-fPIC"]
        defined = [f"-D{name}={size}" for name, size in sizes.items()]
        command = ["cc", *flags, *defined, str(Path(__file__).with_name("adder_plain.c")), "-o", str(library), "-lm"]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ConfigError(f"adder_plain.c needs a C compiler, `cc`: {error}") from error
        loaded = ctypes.CDLL(str(library))
    loaded.adders.restype = None
    return loaded


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results = beside_runs(arguments)
    given, overrides = own_and_others(arguments, "seeds", "only")
    seeds = whole_numbers(given, "seeds", "0,1,2")
    labels = some_of(LADDER, given.get("only"))
    for seed in seeds:
        for label in labels:
            trained(label, seed, overrides)
    outputs = [part.removeprefix("output=") for part in overrides if part.startswith("output=")]
    output = Path(outputs[-1] if outputs else "checkpoints")
    rows, points = [], {}
    for label in LADDER:
        runs = [Run(output / name(label, seed)) for seed in seeds]
        found = [run.read_json("summary") for run in runs if (run.path / "summary.json").is_file()]
        if not found:
            continue
        shares = [summary["exact_match"]["value"] for summary in found]
        learned = wilson(sum(share >= LEARNED for share in shares), len(shares))
        points[label] = (found[0]["parameters"], learned)
        figures_of = [f"{100 * share:.2f}" for share in (min(shares), median(shares), max(shares))]
        rows.append((label, str(found[0]["parameters"]), str(len(found)), percent(learned), *figures_of))
    columns = ("model", "parameters", "groups", "learned", "worst, % right", "median", "best")
    title = "Plain blocks: groups of seeds that learn to add two 10-digit integers (99.9 % right)"
    results.show(Table(title, columns, rows, 1), "adder_plain")
    learned_by_size(points, title, results.file("adder_plain.png"))


def name(label: str, seed: int) -> str:
    return f"adder_plain_{label.replace(', ', '-').replace(' ', '-')}_{seed}"


def trained(label: str, seed: int, overrides: Sequence[str]) -> None:
    settings = [*LADDER[label], f"name={name(label, seed)}", f"seed={seed}", *overrides, "resume=true"]
    config = load(AdderConfig, ROOT / "configs" / "adder_plain.yaml", settings)
    run = Run(Path(config.output) / config.name)
    if not (run.path / "summary.json").exists():
        share, _ = train_adder(config, CompiledModel)
        print(f"{config.name}: {share.value:.2%} of {share.n:,} right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
