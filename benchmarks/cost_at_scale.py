"""What training would cost on GPUs that we do not have: samples a second and GPU-hours, calculated, not measured.

    python -m benchmarks.cost_at_scale [steps=N]

Tokens are counted on the lab's own prompts with the models' own tokenizers: the problems of `configs/llama_lora.yaml`
(all 53 tasks, S and M), in its steps of 64, as prefix trees, with the cheapest size of micro-batch. A larger
micro-batch shares more tokens, but its attention covers more pairs of tokens. Operations follow from the shape of the
model (shared/lora_operations.py). The rate of a GPU is its peak rate times a utilisation, which is an assumption and is
shown in every row. Writes cost_at_scale.md to checkpoints/results/.
"""

import sys
from pathlib import Path
from typing import NamedTuple

from transformers import AutoTokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from experiments.shared.arguments import own, whole_number
from experiments.shared.lora_operations import lora_operations
from experiments.shared.publishing import beside_runs
from experiments.shared.vocabularies import llama_3_vocabulary
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.errors import exit_cleanly
from lab.models.sources import locate
from lab.text.examples import IGNORED
from lab.text.wording import Wording
from lab.tune.collation import PrefixTreeCollator
from lab.tune.problem_sets import Rows, Selection, problem_set

ROOT = Path(__file__).parents[1]
PAPER, MANY = 51_200, 50_000_000
"""Numbers of samples: 800 steps of 64 (Number Cookbook A.4.1), and as many as in pretraining."""

MICRO_BATCHES = (8, 16, 32, 64)


class Shape(NamedTuple):
    """A published model with the Llama architecture: the numbers of its config.json."""

    layers: int
    width: int
    feed_forward: int
    """Inner width of the feed-forward layer."""
    heads: int
    key_value_heads: int
    head_width: int
    vocabulary: int
    tied: bool
    """Whether the head shares its weights with the embeddings."""

    @property
    def products(self) -> list[tuple[int, int]]:
        """Inputs and outputs of the seven linear layers of a layer: q, k, v, o, gate, up, down."""
        queries, keys = self.heads * self.head_width, self.key_value_heads * self.head_width
        inward = [(self.width, queries), (self.width, keys), (self.width, keys), (queries, self.width)]
        return [
            *inward,
            (self.width, self.feed_forward),
            (self.width, self.feed_forward),
            (self.feed_forward, self.width),
        ]

    @property
    def weights(self) -> int:
        """The number of weights of all linear layers, without the head."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.products)

    @property
    def head(self) -> int:
        return self.width * self.vocabulary

    @property
    def attention_width(self) -> int:
        """The sum of the widths of all heads in all layers."""
        return self.layers * self.heads * self.head_width

    @property
    def parameters(self) -> int:
        norms = (2 * self.layers + 1) * self.width
        return self.weights + norms + (1 if self.tied else 2) * self.head

    def adapters(self, rank: int) -> int:
        """The number of parameters of LoRA on all linear layers."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.products)


SHAPES = {
    "SmolLM2-135M": Shape(30, 576, 1536, 9, 3, 64, 49_152, tied=True),
    "SmolLM2-1.7B": Shape(24, 2048, 8192, 32, 32, 64, 49_152, tied=True),
    "Llama-3.1-8B": Shape(32, 4096, 14_336, 32, 8, 128, 128_256, tied=False),
    "Llama-3.1-70B": Shape(80, 8192, 28_672, 64, 8, 128, 128_256, tied=False),
}


class Device(NamedTuple):
    name: str
    operations: float
    """Floating-point operations a second: the peak rate, or the measured one."""
    utilisation: float
    """The share of the peak rate that training reaches."""
    assumption: str


# The rate of the CPU is the one that benchmarks/speed_training.py measured for the lab's own loop.
CPU = Device("two CPU cores (Zen 3)", 100e9, 1.0, "the rate that training reached there, measured")
# Dense bfloat16 peaks of NVIDIA's data sheets.
A100, H100 = ("A100", 312e12), ("H100 SXM", 989e12)
LARGE = 0.40, "as Llama 3's own training, 38-43 % (Llama 3 Herd of Models, Table 4)"
MIDDLE = 0.30, "a guess: smaller products than Llama 3's"
SMALL = 0.05, "a guess: products so small that starting them is what takes the time"
ROWS = [
    ("SmolLM2-135M", CPU),
    *((name, Device(*gpu, *share)) for name, share in (("SmolLM2-135M", SMALL), ("SmolLM2-1.7B", MIDDLE))
      for gpu in (A100, H100)),
    *((name, Device(*gpu, *LARGE)) for name in ("Llama-3.1-8B", "Llama-3.1-70B") for gpu in (A100, H100)),
]  # fmt: skip


class SampleTokens(NamedTuple):
    """Means per training sample, in micro-batches of `micro_batch` samples."""

    micro_batch: int
    alone: float
    """Tokens if every sample were computed alone and without padding."""
    computed: float
    """Tokens of the trees."""
    answers: float
    pairs: float
    """Pairs of tokens that attention multiplies."""


def count_tokens(
    tokenizer: PreTrainedTokenizerBase, config: FinetuneConfig, steps: int, micro_batch: int
) -> SampleTokens:
    batch, collate = config.training.batch_size, PrefixTreeCollator().of_rows
    found = problem_set(
        Selection(config.data.cells, config.seed), "train", steps * batch, Rows(tokenizer, Wording()), batch
    )
    rows = found.rows(range(steps * batch))
    trees = [collate(rows[start : start + micro_batch]) for start in range(0, len(rows), micro_batch)]
    sizes = [tree["input_ids"].numel() for tree in trees]
    answers = sum(int((tree["shift_labels"] != IGNORED).sum()) for tree in trees)
    alone = sum(len(row["prompt_ids"]) + len(row["completion_ids"]) - 1 for row in rows)
    return SampleTokens(
        micro_batch, *(total / len(rows) for total in (alone, sum(sizes), answers, sum(size**2 for size in sizes)))
    )


def operations(shape: Shape, rank: int, tokens: SampleTokens) -> float:
    """The operations of training on one sample."""
    return lora_operations(
        shape.weights,
        shape.adapters(rank),
        shape.head,
        shape.attention_width,
        tokens.computed,
        tokens.answers,
        tokens.pairs,
    )


def duration(hours: float) -> str:
    return f"{60 * hours:.0f} min" if hours < 1 else f"{hours:,.1f} h" if hours < 10 else f"{hours:,.0f} h"


def table(config: FinetuneConfig, steps: int) -> str:
    tokenizers = {
        "SmolLM2": AutoTokenizer.from_pretrained(locate("smollm2-135m-instruct")),
        "Llama-3.1": llama_3_vocabulary(),
    }
    counted = {
        name: [count_tokens(one, config, steps, size) for size in MICRO_BATCHES] for name, one in tokenizers.items()
    }
    lines = [
        "| model | micro-batch | tokens a sample: alone, computed, answer | GFLOP a sample | device "
        "| peak TFLOP/s x utilisation | samples/s and device "
        f"| device-hours for {PAPER:,} | for {MANY // 10**6} M | the utilisation is |",
        "|---|---:|---:|---:|---|---:|---:|---:|---:|---|",
    ]
    for name, device in ROWS:
        ways = {operations(SHAPES[name], config.adapter.rank, way): way for way in counted[name.rpartition("-")[0]]}
        needed, tokens = min(ways.items())
        rate = device.operations * device.utilisation / needed
        hours = [duration(samples / rate / 3600) for samples in (PAPER, MANY)]
        cells = [
            name,
            f"{tokens.micro_batch}",
            f"{tokens.alone:.0f}, {tokens.computed:.0f}, {tokens.answers:.1f}",
            f"{needed / 1e9:,.0f}",
            device.name,
            f"{device.operations / 1e12:,.4g} x {device.utilisation:.0%}",
            f"{rate:,.3g}" if rate < 100 else f"{rate:,.0f}",
            *hours,
            device.assumption,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@exit_cleanly
def main(arguments: list[str]) -> None:
    results = beside_runs(arguments)
    steps = whole_number(own(arguments, "steps"), "steps", 25)
    config = load(FinetuneConfig, ROOT / "configs" / "llama_lora.yaml")
    written = table(config, steps)
    print(written)
    results.file("cost_at_scale.md").write_text(written)


if __name__ == "__main__":
    main(sys.argv[1:])
