"""The experiment itself, cut down: real servers, the real model, both engines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def samples(path: Path) -> list[dict]:
    return sorted(map(json.loads, path.open()), key=lambda sample: sample["index"])


@pytest.mark.slow
def test_every_benchmark_runs_locally_and_through_a_served_endpoint_with_the_same_answers(tmp_path):
    script = ROOT / "experiments" / "smollm2_benchmarks.py"
    small = ["limit=3", f"output={tmp_path}"]
    done = subprocess.run([sys.executable, script, *small], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs = sorted(path.name for path in tmp_path.iterdir())
    assert runs == [
        "carry_free_smollm2",
        "nupa_smollm2",
        "nupa_smollm2_5shot",
        "nupa_smollm2_chat",
        "two_integers_smollm2",
    ]
    for run in runs:
        assert (tmp_path / run / "status").read_text() == "finished\n"
        assert len(samples(tmp_path / run / "samples.jsonl")) == 3
        assert not any(sample["api_error"] for sample in samples(tmp_path / run / "samples.jsonl"))

    local = ["engine={kind: local, model: {name: smollm2-135m-instruct, device: cpu, dtype: float32}}", "name=local"]
    command = [sys.executable, "-m", "lab.evaluate", "configs/two_integers.yaml", *local, *small]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, check=True)
    served, here = (samples(tmp_path / run / "samples.jsonl") for run in ("two_integers_smollm2", "local"))
    for one, other in zip(served, here, strict=True):
        assert one["prompt"] == other["prompt"]
        assert one["text"] == other["text"]
        assert one["prompt_tokens"] == other["prompt_tokens"]
