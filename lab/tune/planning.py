"""What a fine-tuning job will take: parameters, memory and time, calculated from the model's shape before anything is
loaded or downloaded. `lab finetune CONFIG --dry-run` prints it.

The shape comes from the model's config.json if it is on this machine, or from the published shapes below. Prompts are
tokenized by the model's own tokenizer if it is here, or else by that of the embedded model. Times are operations by the
rate of this machine's matrix products, measured for a moment, so they are right to about a factor of two.

Shapes: T tokens that a forward pass computes, W width of the residual stream, F width of the MLP.
"""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.config.finetuning import FinetuneConfig
from lab.models.sources import EMBEDDED, cache_folder, resolve
from lab.numbers.sampling import Mixture, Problem
from lab.text import formats
from lab.text.examples import plain

PUBLISHED = {
    "meta-llama/Llama-3.2-1B": (16, 2048, 8192, 32, 8, 64, 128_256, True),
    "meta-llama/Llama-3.2-3B": (28, 3072, 8192, 24, 8, 128, 128_256, True),
    "meta-llama/Llama-3.1-8B": (32, 4096, 14_336, 32, 8, 128, 128_256, False),
    "meta-llama/Llama-3.1-70B": (80, 8192, 28_672, 64, 8, 128, 128_256, False),
    "HuggingFaceTB/SmolLM2-135M": (30, 576, 1536, 9, 3, 64, 49_152, True),
    "HuggingFaceTB/SmolLM2-360M": (32, 960, 2560, 15, 5, 64, 49_152, True),
    "HuggingFaceTB/SmolLM2-1.7B": (24, 2048, 8192, 32, 32, 64, 49_152, True),
}
"""The numbers of `Shape` in the config.json of models that a hub may refuse to show without a login."""

_SHARE = {"cpu": 0.7, "cuda": 0.4}
"""The share of the rate of matrix products that training reaches (docs/scale.md); small models reach less on a GPU."""
_SAMPLES = 256
"""Problems whose tokens are counted."""


class Shape(NamedTuple):
    """A model with the Llama architecture, by the numbers of its config.json."""

    layers: int
    width: int
    mlp: int
    heads: int
    key_value_heads: int
    head_width: int
    vocabulary: int
    tied: bool
    """Whether the head shares its weights with the embeddings."""

    @property
    def products(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the linear layers of a layer."""
        queries, keys = self.heads * self.head_width, self.key_value_heads * self.head_width
        into = {"q_proj": (self.width, queries), "k_proj": (self.width, keys), "v_proj": (self.width, keys)}
        mlp = {
            "gate_proj": (self.width, self.mlp),
            "up_proj": (self.width, self.mlp),
            "down_proj": (self.mlp, self.width),
        }
        return {**into, "o_proj": (queries, self.width), **mlp}

    @property
    def linear(self) -> int:
        """The number of weights of all linear layers, without the head."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.products.values())

    @property
    def parameters(self) -> int:
        norms = (2 * self.layers + 1) * self.width
        return self.linear + norms + (1 if self.tied else 2) * self.width * self.vocabulary

    def adapters(self, rank: int, targets: Sequence[str]) -> int:
        """The number of weights of LoRA on these layers."""
        return self.layers * sum(rank * sum(self.products[name]) for name in targets if name in self.products)


def shape_of(name: str) -> Shape | None:
    """The shape of a model by its name; None if it is neither on this machine nor among the published ones."""
    folder = folder_of(name)
    if not folder:
        return next((Shape(*numbers) for known, numbers in PUBLISHED.items() if name.startswith(known)), None)
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    try:
        heads, width = found["num_attention_heads"], found["hidden_size"]
        head_width = found.get("head_dim") or width // heads
        keys = found.get("num_key_value_heads") or heads
        counts = (found["num_hidden_layers"], width, found["intermediate_size"], heads, keys, head_width)
        return Shape(*counts, found["vocab_size"], bool(found.get("tie_word_embeddings")))
    except (KeyError, TypeError):
        return None  # of another architecture


def folder_of(name: str) -> Path | None:
    """The folder of a model on this machine, with its config.json; None if it would have to be fetched."""
    folder = cache_folder() / name if name in EMBEDDED else Path(resolve(name))
    if not (folder / "config.json").is_file() and "/" in name:
        from huggingface_hub import try_to_load_from_cache

        cached = try_to_load_from_cache(name, "config.json")
        folder = Path(cached).parent if isinstance(cached, str) else folder
    return folder if (folder / "config.json").is_file() else None


class Memory(NamedTuple):
    """Bytes that a training step needs, by what they hold."""

    weights: float
    adapters: float
    optimizer: float
    """Gradients and running means of the adapters."""
    activations: float
    """What the forward pass keeps for the backward pass, with the logits of the answers."""

    @property
    def all(self) -> float:
        return sum(self)


def memory(shape: Shape, config: FinetuneConfig, item: int, tokens: float, answers: float) -> Memory:
    """The memory of a training step.

    Args:
        shape: the model's.
        config: says rank, quantization, optimizer and whether activations are computed again.
        item: bytes of a number in the model's dtype.
        tokens: tokens that a forward pass computes.
        answers: tokens among them at which the head is applied.
    """
    stored = {"none": item, "int8": 1, "nf4": 0.52}[config.model.quantization]
    weights = stored * shape.linear + item * (shape.parameters - shape.linear)
    trained = shape.adapters(config.adapter.rank, config.adapter.targets)
    states = 4 + (8 if config.training.optimizer == "adamw" else 2)
    layers = shape.layers * _kept_by_a_layer(shape, config, item)
    if config.training.gradient_checkpointing:
        layers = shape.layers * item * shape.width + layers / shape.layers
    logits = 3 * 4 * shape.vocabulary * answers
    return Memory(weights, 4 * trained, states * trained, layers * tokens + logits)


def _kept_by_a_layer(shape: Shape, config: FinetuneConfig, item: int) -> float:
    """Bytes that a layer keeps for each token: the inputs of both norms in float32, and in the model's dtype what the
    norms write, queries, keys, values and what attention makes of them, four vectors of the MLP, and what goes between
    the two matrices of each adapter; with dropout, also a copy and a mask of each adapter's input."""
    queries, keys = shape.heads * shape.head_width, shape.key_value_heads * shape.head_width
    between = config.adapter.rank * len(config.adapter.targets)
    vectors = 2 * shape.width + 2 * queries + 2 * keys + 4 * shape.mlp + between
    dropped = sum(shape.products[name][0] for name in config.adapter.targets if name in shape.products)
    return 8 * shape.width + item * vectors + (item + 1) * dropped * (config.adapter.dropout > 0)


class Tokens(NamedTuple):
    """Means per problem, in micro-batches whose problems share what their prompts begin with."""

    prompt: float
    answer: float
    computed: float
    """Tokens that a forward pass computes, without those that an earlier problem of the micro-batch has too."""


def count_tokens(config: FinetuneConfig, name: str) -> Tokens:
    """Tokens of some training problems. Raises ModelError if there is no tokenizer on this machine."""
    from tokenizers import Tokenizer

    folder = folder_of(name) or folder_of(next(iter(EMBEDDED)))
    size, wording = config.training.micro_batch_size, formats.tuned(config.format, config.data)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json")) if folder else None
    encode = (lambda text: tokenizer.encode(text).ids) if tokenizer else (lambda text: list(text[::3]))
    mixture, count = Mixture(config.data.cells, "train", config.seed, 10**9), max(size, _SAMPLES // size * size)
    rows = [
        (encode(_text(plain(wording.prompt(one)))), encode(wording.completion(one))) for one in _first(mixture, count)
    ]
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    computed = sum(map(_distinct, parts))
    return Tokens(sum(len(p) for p, _ in rows) / count, sum(len(c) for _, c in rows) / count + 1, computed / count)


def _first(mixture: Mixture, count: int) -> Iterator[Problem]:
    return (mixture[index] for index in range(count))


def _text(prompt: str | list[dict[str, str]]) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(message["content"] for message in prompt)


def _distinct(rows: Sequence[tuple[list[int], list[int]]]) -> int:
    """The nodes of the prefix tree of these rows."""
    shared = {tuple(prompt[: end + 1]) for prompt, _ in rows for end in range(len(prompt) - 1)}
    return len(shared) + sum(1 + len(completion) for _, completion in rows)


def product_rate(device: str, dtype: str) -> float:
    """Operations a second of matrix products on this machine, measured for a fraction of a second. On a CPU, they are
    those of this process if no other one takes its time."""
    import torch

    on_gpu = device == "cuda"
    size, clock = (4096, time.perf_counter) if on_gpu else (768, time.process_time)
    threads = 1 if on_gpu else torch.get_num_threads()
    a = torch.ones(size, size, dtype=getattr(torch, dtype), device=device)
    best = float("inf")
    for _ in range(6):
        began = clock()
        (a @ a).sum().item()
        best = min(best, (clock() - began) / threads)
    return 2 * size**3 / best


class Times(NamedTuple):
    """Seconds."""

    training: float
    test: float
    """Of one of the two tests."""


def times(shape: Shape, config: FinetuneConfig, tokens: Tokens, problems: int, rate: float, share: float) -> Times:
    """How long training and a test take at a rate of matrix products, of which training reaches a share. In a test, a
    token of an answer is computed by itself, for all problems of a batch at once, at half of that share."""
    adapters = shape.adapters(config.adapter.rank, config.adapter.targets)
    head = shape.width * shape.vocabulary
    of_sample = (4 * shape.linear + 6 * adapters) * tokens.computed + 4 * head * tokens.answer
    if config.training.gradient_checkpointing:
        of_sample += 2 * shape.linear * tokens.computed
    samples = config.training.max_steps * config.training.batch_size
    validated = config.training.valid_problems * (config.training.max_steps // config.training.evaluate_every)
    once = 2 * shape.linear
    trained = of_sample * samples + once * tokens.computed * validated
    tested = once * tokens.computed + 2 * (once + 2 * head) * tokens.answer
    return Times(trained / (rate * share), tested * problems / (rate * share))


def plan(config: FinetuneConfig, problems: int) -> str:
    """What the job takes, as lines of text; `problems` are asked before and after training."""
    from lab.models.free_memory import free_memory, in_words
    from lab.models.pretrained import resolve_device, resolve_dtype
    from lab.progress import clock

    lines = [f"test problems: {problems:,}, asked before and after training"]
    if not (shape := shape_of(config.model.name)):
        return "\n".join(
            [*lines, f"{config.model.name}: its shape is not on this machine, so memory and time are not estimated"]
        )
    device, dtype = resolve_device(config.model), str(resolve_dtype(config.model)).removeprefix("torch.")
    tokens, item = count_tokens(config, config.model.name), {"float32": 4, "bfloat16": 2}[dtype]
    size = config.training.micro_batch_size
    need = memory(shape, config, item, size * tokens.computed, size * tokens.answer)
    took = times(shape, config, tokens, problems, product_rate(device.type, dtype), _SHARE[device.type])
    adapters, free = shape.adapters(config.adapter.rank, config.adapter.targets), free_memory(device)
    parts = ", ".join(f"{name} {in_words(value)}" for name, value in need._asdict().items())
    verdict = "fits" if need.all <= free else f"DOES NOT FIT: {_smaller(config)}"
    here = (
        "" if folder_of(config.model.name) else f"; not on this machine, {in_words(item * shape.parameters)} to fetch"
    )
    return "\n".join(
        [
            f"model: {config.model.name}, {shape.parameters / 1e6:,.0f}M parameters in {dtype}{here}",
            f"adapters: {adapters / 1e6:,.1f}M parameters, rank {config.adapter.rank}",
            f"memory of a step of {size} problems at a time: {in_words(need.all)} ({parts})",
            f"free on {device.type}: {in_words(free)}; {verdict}",
            f"tokens a problem: {tokens.prompt:.0f} + {tokens.answer:.0f}, {tokens.computed:.0f} computed",
            f"time, about: training {clock(took.training)}, each of the two tests {clock(took.test)}",
            *lines,
        ]
    )


def _smaller(config: FinetuneConfig) -> str:
    """What to change so that less memory is needed."""
    ways = {
        "model.quantization=nf4": config.model.quantization == "none",
        "training.gradient_checkpointing=true": not config.training.gradient_checkpointing,
        "training.micro_batch_size=1": config.training.micro_batch_size > 1,
    }
    return " or ".join(way for way, helps in ways.items() if helps) or "use a smaller model"


def table(names: Sequence[str], ranks: Sequence[int], sizes: Sequence[int]) -> str:
    """The memory of a training step by model, dtype, rank and micro-batch, as a Markdown table in GB."""
    from lab.config.loading import load
    from lab.shipped import shipped_configs

    columns = [(name, rank, size) for name in names for rank in ranks for size in sizes]
    lines = [
        "| model | rank | problems at a time | float32 | bfloat16 | and recomputing | nf4, 8-bit Adam, recomputing |"
    ]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    again = "training.gradient_checkpointing=true"
    small = [again, "model.quantization=nf4", "training.optimizer=adamw_8bit"]
    for name, rank, size in columns:
        words = [f"model.name={name}", f"adapter.rank={rank}", f"training.micro_batch_size={size}"]
        cells = []
        for item, more in ((4, []), (2, []), (2, [again]), (2, small)):
            config = load(FinetuneConfig, shipped_configs()["llama_lora"], [*words, *more])
            shape, tokens = shape_of(name), count_tokens(config, name)
            assert shape
            cells.append(memory(shape, config, item, size * tokens.computed, size * tokens.answer).all / 1e9)
        lines.append(f"| {name.partition('/')[2]} | {rank} | {size} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":  # the table of docs/uses/tune.md
    print(table(["HuggingFaceTB/SmolLM2-135M", *list(PUBLISHED)[:4]], [8, 128], [8, 64]))
