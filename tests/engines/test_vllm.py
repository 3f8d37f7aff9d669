"""What the lab and vLLM's own server (`make test-vllm`) answer to the same questions, plain and with a LoRA module."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from lab.config.evaluation import EndpointConfig
from lab.engines.endpoint import EndpointEngine
from lab.engines.engine import Request

VLLM = os.environ.get("VLLM_PYTHON")
"""The Python of the environment in which vLLM is installed."""
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not VLLM, reason="needs vLLM: make test-vllm")]

MODEL, TUNED = "smollm2-135m-instruct", "tuned"
ASKED = ["benchmark.tasks=[max_integer, add_integer]", "benchmark.problems_per_range=3"]
"""Two tasks in four ranges: 24 problems."""


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    """Random adapters on the embedded model, large enough to change its answers."""
    import torch

    from lab.config.finetuning import LoraConfig
    from lab.config.schema import ModelConfig
    from lab.models import adapters as lora
    from lab.models import pretrained

    model, _ = pretrained.load(ModelConfig(name=MODEL, dtype="float32", device="cpu"))
    tuned = lora.attach(model, LoraConfig(rank=8), seed=0)
    for name, weight in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    folder = tmp_path_factory.mktemp("adapters") / TUNED
    tuned.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="module")
def server(adapters, tmp_path_factory):
    """The root of the API of vLLM's server, which knows the embedded model and, as a LoRA module, the adapters on it.
    In float32, because there the order of sums in a batch changes no choice of a token."""
    from lab.models.sources import locate

    port = _free_port()
    words = ["--model", locate(MODEL), "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    words += ["--dtype", "float32", "--max-model-len", "512", "--enforce-eager"]  # compiling takes minutes on one core
    words += ["--enable-lora", "--max-lora-rank", "8", "--lora-modules", f"{TUNED}={adapters}"]
    log = tmp_path_factory.mktemp("server") / "log"
    # what `vllm serve` starts; the build for CPUs, whose package has another name, does not start by that command
    command = [str(VLLM), "-m", "vllm.entrypoints.openai.api_server", *words]
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("w") as lines, subprocess.Popen(command, stdout=lines, stderr=lines, env=settings) as run:
        try:
            _wait_for(f"http://127.0.0.1:{port}/v1/models", run, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            run.terminate()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _wait_for(address: str, run: subprocess.Popen, log: Path) -> None:
    import httpx2

    for _ in range(600):
        assert run.poll() is None, f"the server ended: {log.read_text()[-2000:]}"
        try:
            if httpx2.get(address).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(1)
    raise AssertionError("the server does not answer")


def answers(run: Path) -> dict[int, dict]:
    lines = (run / "samples.jsonl").read_text().splitlines()
    return {sample["index"]: sample for sample in map(json.loads, lines)}


def test_the_server_and_the_labs_engine_read_the_same_answers(server, tmp_path):
    """vLLM may write more, because nothing stops it when an answer is decided."""
    from lab.evaluate import main

    engines = {
        "served": f"{{kind: openai, base_url: '{server}', model: {MODEL}}}",
        "local": f"{{kind: local, model: {{name: {MODEL}, dtype: float32, device: cpu}}}}",
    }
    for name, engine in engines.items():
        main(["nupa_smollm2", *ASKED, f"engine={engine}", f"output={tmp_path}", f"name={name}"])
    theirs, ours = answers(tmp_path / "served"), answers(tmp_path / "local")
    assert len(ours) == len(theirs) == 24
    for index, sample in ours.items():
        assert theirs[index]["strict"] == sample["strict"]
        assert theirs[index]["loose"] == sample["loose"]
        assert theirs[index]["text"].startswith(sample["text"])


def test_a_lora_module_changes_what_the_server_answers_as_it_changes_what_the_lab_answers(server, adapters):
    from lab.config.schema import ModelConfig
    from lab.engines.local import LocalEngine
    from lab.models import loading

    requests = [Request(f"Add two numbers: {i} + 25 =", 8) for i in range(8)]
    tuned = LocalEngine(*loading.load(ModelConfig(name=str(adapters), dtype="float32", device="cpu")), batch_size=8)
    engines = (
        tuned,
        EndpointEngine(EndpointConfig(base_url=server, model=TUNED)),
        EndpointEngine(EndpointConfig(base_url=server, model=MODEL)),
    )
    expected, found, untuned = (
        {i: done.text for batch in engine.generate(requests) for i, done in batch.items()} for engine in engines
    )
    assert found == expected
    assert found != untuned
