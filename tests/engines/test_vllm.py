"""What is asked of vLLM, with a stand-in for it; and, if it is installed (`make test-vllm`), what it answers."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from lab.config.evaluation import VllmConfig
from lab.engines.engine import Request, Sampling
from lab.engines.vllm import VllmEngine, subject
from lab.errors import ModelError

INSTALLED = importlib.util.find_spec("vllm") is not None


@pytest.mark.skipif(INSTALLED, reason="vLLM is installed")
def test_without_vllm_the_error_says_how_to_get_it(toy_model):
    with pytest.raises(ModelError, match="`make vllm` sets up an environment for it"):
        VllmEngine(VllmConfig(model=str(toy_model)))


class FakeLLM:
    """Stands in for vllm.LLM as its documentation describes it; only our side of the call is tested by it."""

    def __init__(self, **settings):
        self.settings, self.batches, self.lora = settings, [], []

    def get_tokenizer(self):
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.settings["model"])

    def generate(self, prompts, sampling_params, use_tqdm, lora_request):
        self.batches.append((prompts, sampling_params))
        self.lora.append(lora_request)
        return [
            SimpleNamespace(outputs=[SimpleNamespace(text=f" {p.seed}", token_ids=[1, 2], finish_reason="length")])
            for p in sampling_params
        ]


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "vllm", SimpleNamespace(LLM=FakeLLM, SamplingParams=SimpleNamespace, __version__="0")
    )
    request = SimpleNamespace(LoRARequest=lambda *words: words)
    monkeypatch.setitem(sys.modules, "vllm.lora.request", request)


def adapters(folder, **said):
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 24, **said}))
    return folder


def test_what_is_asked_of_vllm(fake, toy_model):
    engine = VllmEngine(VllmConfig(model=str(toy_model), tensor_parallel=2, batch_size=3))
    requests = [Request(f"{i} + {i} =", 5 + i) for i in range(6)]
    sampling = Sampling(0.6, 0.9, seed=1)
    found = {i: done for batch in engine.generate(requests, sampling, done={1}) for i, done in batch.items()}
    assert engine._model.settings["tensor_parallel_size"] == 2
    assert "enable_lora" not in engine._model.settings
    assert engine._model.lora == [None, None]
    assert [len(prompts) for prompts, _ in engine._model.batches] == [3, 2]
    assert set(found) == {0, 2, 3, 4, 5}
    for i, done in found.items():
        assert done.text == f" {sampling.seed_of(i)}"
        assert (done.prompt_tokens, done.completion_tokens, done.finish_reason) == (len(f"{i} + {i} ="), 2, "length")
    assert [p.max_tokens for _, parameters in engine._model.batches for p in parameters] == [5, 7, 8, 9, 10]


def test_adapters_go_to_vllm_as_a_lora_request_on_their_base_model(fake, toy_model, tmp_path):
    folder = adapters(tmp_path / "tuned", base_model_name_or_path=str(toy_model))
    engine = VllmEngine(VllmConfig(model=str(folder)))
    list(engine.generate([Request("1 + 1 =", 5)]))
    assert engine._model.settings["model"] == str(toy_model)
    assert (engine._model.settings["enable_lora"], engine._model.settings["max_lora_rank"]) == (True, 32)
    assert engine._model.lora == [("adapters", 1, str(folder))]


def test_a_run_is_opened_with_the_base_model_that_its_config_names_and_asked_in_its_format(fake, toy_model, tmp_path):
    folder = adapters(tmp_path / "run" / "model", base_model_name_or_path="/of/another/machine")
    (folder / "swap.json").write_text('{"format": {"reverse": "total"}}')
    (tmp_path / "run" / "config.yaml").write_text(f"model: {{name: {toy_model}}}")
    assert subject(str(tmp_path / "run")) == (str(toy_model), folder, 24)
    assert VllmEngine(VllmConfig(model=str(tmp_path / "run"))).format.reverse == "total"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model/swap.json", '{"positions": {"kind": "nope"}}', "has swapped tokens or positions (swap.json)"),
        ("swap.json", '{"tokenizer": {"digits": {"kind": "k_digit"}}}', "has swapped tokens or positions (swap.json)"),
        ("model/config.json", '{"model_type": "number_llama"}', "is a model from scratch, which vLLM does not know"),
        ("adapter_config.json", "{", "adapter_config.json: while parsing"),
    ],
)
def test_what_vllm_would_compute_differently_is_refused_in_one_line_before_it_is_imported(
    tmp_path, monkeypatch, file, content, message
):
    monkeypatch.setitem(sys.modules, "vllm", None)
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / file).write_text(content)
    with pytest.raises(ModelError) as caught:
        VllmEngine(VllmConfig(model=str(tmp_path / "run")))
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# With the real vLLM ----------------------------------------------------------------------------------------------

real = pytest.mark.skipif(not INSTALLED, reason="needs vLLM: make test-vllm")
MODEL = "smollm2-135m-instruct"
ASKED = ["benchmark.tasks=[max_integer, add_integer]", "benchmark.problems_per_range=3"]
"""Two tasks in four ranges: 24 problems."""


def answers(run):
    lines = (run / "samples.jsonl").read_text().splitlines()
    return {sample["index"]: sample for sample in map(json.loads, lines)}


@pytest.fixture(scope="module")
def in_process(tmp_path_factory):
    """A run of 24 problems in vLLM, and the same in the lab's own engine, both in float32."""
    from lab.evaluate import main

    folder = tmp_path_factory.mktemp("runs")
    engines = {
        "vllm": f"{{kind: vllm, model: {MODEL}, dtype: float32, max_model_len: 512}}",
        "local": f"{{kind: local, model: {{name: {MODEL}, dtype: float32}}}}",
    }
    for name, engine in engines.items():
        main(["nupa_smollm2", *ASKED, f"engine={engine}", f"output={folder}", f"name={name}"])
    return {name: answers(folder / name) for name in engines}


@real
@pytest.mark.slow
def test_vllm_and_the_labs_engine_read_the_same_answers(in_process):
    """In float32, because there the order of sums in a batch changes no choice of a token. vLLM may write more, because
    nothing stops it when an answer is decided."""
    ours, theirs = in_process["local"], in_process["vllm"]
    assert len(ours) == len(theirs) == 24
    for index, sample in ours.items():
        assert theirs[index]["strict"] == sample["strict"]
        assert theirs[index]["loose"] == sample["loose"]
        assert theirs[index]["text"].startswith(sample["text"])


@real
@pytest.mark.slow
def test_adapters_change_what_vllm_answers_as_they_change_what_the_lab_answers(tmp_path):
    import torch

    from lab.config.finetuning import LoraConfig
    from lab.config.schema import ModelConfig
    from lab.engines.local import LocalEngine
    from lab.models import adapters as lora
    from lab.models import loading, pretrained

    model, _ = pretrained.load(ModelConfig(name=MODEL, dtype="float32"))
    tuned = lora.attach(model, LoraConfig(rank=8), seed=0)
    for name, weight in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    tuned.save_pretrained(tmp_path / "tuned")
    engine = VllmEngine(VllmConfig(model=str(tmp_path / "tuned"), dtype="float32", max_model_len=256))
    requests = [Request(f"Add two numbers: {i} + 25 =", 8) for i in range(8)]
    local = LocalEngine(*loading.load(ModelConfig(name=str(tmp_path / "tuned"), dtype="float32")), batch_size=8)
    plain = LocalEngine(*pretrained.load(ModelConfig(name=MODEL, dtype="float32")), batch_size=8)
    found, expected, untuned = (
        {i: done.text for batch in asked.generate(requests) for i, done in batch.items()}
        for asked in (engine, local, plain)
    )
    assert found == expected
    assert found != untuned


@real
@pytest.mark.slow
def test_its_server_answers_every_problem_of_an_evaluation(tmp_path):
    from lab.evaluate import main
    from lab.models.sources import locate

    port = 8437
    words = ["--model", locate(MODEL), "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    words.append("--enforce-eager")  # compiling takes minutes on one core
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *words, "--max-model-len", "512"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            _wait_for(f"http://127.0.0.1:{port}/v1/models", server)
            base = f"engine.base_url=http://127.0.0.1:{port}/v1"
            os.environ.setdefault("OPENAI_API_KEY", "none")
            main(["nupa_endpoint", *ASKED, base, f"engine.model={MODEL}", f"output={tmp_path}", "name=served"])
        finally:
            server.terminate()
    found = answers(tmp_path / "served")
    assert len(found) == 24
    assert {sample["finish_reason"] for sample in found.values()} <= {"stop", "length"}


def _wait_for(address, server):
    import httpx2

    for _ in range(600):
        assert server.poll() is None, "the server ended"
        try:
            if httpx2.get(address).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(1)
    raise AssertionError("the server does not answer")
