import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lab.benchmarks.cost.measuring import Meter
from lab.engines.engine import Request
from lab.engines.plain import PlainEngine
from lab.runs import Run

REQUESTS = [Request(f"{7 * i}+{i**3}=", 3 + 5 * (i % 4), "add") for i in range(11)]
"""In batches of 4 the longest budget is 18 tokens, and 13 in the last one."""


def test_a_meter_records_what_was_computed_since_it_began(toy_model, tmp_path):
    run = Run.open(tmp_path / "run", "a: 1\n")
    model = AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32)
    engine = PlainEngine(model, AutoTokenizer.from_pretrained(toy_model), 4)
    list(engine.generate(REQUESTS[:1]))  # what came before is not metered
    meter, whole = Meter(engine, run, "passes"), {}
    for completions in engine.generate(REQUESTS):
        meter.record()
        whole |= completions
    records = run.read("passes")
    assert [record["row_passes"] for record in records] == [4 * 18, 4 * 18, 3 * 13]
    assert sum(record["written"] for record in records) == sum(item.completion_tokens for item in whole.values())
