"""Measures one way to answer the problems of a cost comparison: the answers, and what it took to compute them."""

import torch
from transformers import PreTrainedModel

from lab.benchmarks.benchmark import measure
from lab.benchmarks.cost.scoring import Variant
from lab.benchmarks.nupa.scoring import Nupa
from lab.engines.local import LocalEngine
from lab.engines.plain import PlainEngine
from lab.runs import Run


def measured(name: str, benchmark: Nupa, engine: LocalEngine | PlainEngine, run: Run) -> Variant:
    """Measures one way to answer: its samples and its costs.

    Args:
        name: the name of this way, which also names its files.
        benchmark: the problems.
        engine: the engine that answers them.
        run: the run directory that records samples and costs.
    """
    stem = name.replace(", ", "_").replace(" ", "_")
    requests = benchmark.requests(engine.count_tokens)
    for _ in engine.generate([requests[0]._replace(max_tokens=32)]):
        pass  # warm-up: what a device does only once is not part of the cost
    meter = Meter(engine, run, f"passes_{stem}")
    samples = measure(benchmark, engine, run, f"samples_{stem}", requests=requests, arrived=meter.record)
    model, passes = engine.model, run.read(f"passes_{stem}")
    return Variant(engine.batch_size, model.get_memory_footprint(), token_bytes(model), samples, passes)


class Meter:
    """Records how much an engine computes, in <name>.jsonl, so that a resumed run has the records of all starts.

    A record has the engine's `row_passes` and `written` since the last record. On a GPU, it also has `peak_bytes`: the
    peak of allocated memory, minus what was allocated at the start. Work that a killed process did, and that is then
    repeated, counts twice.
    """

    def __init__(self, engine: LocalEngine | PlainEngine, run: Run, name: str) -> None:
        self.engine, self.run, self.name = engine, run, name
        self.row_passes, self.written = engine.row_passes, engine.written
        self.device, self.allocated = engine.model.device, 0
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            self.allocated = torch.cuda.memory_allocated(self.device)

    def record(self) -> None:
        """Adds a record. Call it when completions have arrived, before they are written."""
        passes, written = self.engine.row_passes, self.engine.written
        record = {"row_passes": passes - self.row_passes, "written": written - self.written}
        if self.device.type == "cuda":
            record["peak_bytes"] = torch.cuda.max_memory_allocated(self.device) - self.allocated
        self.run.append(self.name, [record])
        self.row_passes, self.written = passes, written


def token_bytes(model: PreTrainedModel) -> int:
    """Bytes of the key-value cache for each token: layers x key-value heads x head width x 2 x bytes of a number.

    Exact if every layer keeps all keys and values in the model's dtype, as in Llama.
    """
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    key_value_heads = getattr(config, "num_key_value_heads", None) or heads
    return config.num_hidden_layers * key_value_heads * width * 2 * model.dtype.itemsize
