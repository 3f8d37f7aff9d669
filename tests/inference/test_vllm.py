"""The real engine where vLLM is installed; elsewhere only that its absence is said in one line."""

import importlib.util
import sys
from types import SimpleNamespace

import pytest

from lab.config.evaluation import VllmConfig
from lab.errors import ModelError
from lab.inference.engine import Request, Sampling
from lab.inference.vllm import VllmEngine


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_error_says_what_to_install():
    with pytest.raises(ModelError, match=r"pip install number-lab\[vllm\]"):
        VllmEngine(VllmConfig(model="anything"))


class FakeLLM:
    """Stands in for vllm.LLM as its documentation describes it; only our side of the call is tested by it."""

    def __init__(self, **settings):
        self.settings, self.batches = settings, []

    def get_tokenizer(self):
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.settings["model"])

    def generate(self, prompts, sampling_params, use_tqdm):
        self.batches.append((prompts, sampling_params))
        return [
            SimpleNamespace(outputs=[SimpleNamespace(text=f" {p.seed}", token_ids=[1, 2], finish_reason="length")])
            for p in sampling_params
        ]


def test_what_is_asked_of_vllm(monkeypatch, toy_model):
    fake = SimpleNamespace(LLM=FakeLLM, SamplingParams=SimpleNamespace, __version__="0")
    monkeypatch.setitem(sys.modules, "vllm", fake)
    engine = VllmEngine(VllmConfig(model=str(toy_model), tensor_parallel=2, batch_size=3))
    requests = [Request(f"{i} + {i} =", 5 + i) for i in range(6)]
    sampling = Sampling(0.6, 0.9, seed=1)
    found = {i: done for batch in engine.generate(requests, sampling, done={1}) for i, done in batch.items()}
    assert engine._model.settings["tensor_parallel_size"] == 2
    assert [len(prompts) for prompts, _ in engine._model.batches] == [3, 2]
    assert set(found) == {0, 2, 3, 4, 5}
    for i, done in found.items():
        assert done.text == f" {sampling.seed_of(i)}"
        assert (done.prompt_tokens, done.completion_tokens, done.finish_reason) == (len(f"{i} + {i} ="), 2, "length")
    assert [p.max_tokens for _, parameters in engine._model.batches for p in parameters] == [5, 7, 8, 9, 10]


@pytest.mark.gpu
@pytest.mark.slow
def test_vllm_answers_every_request_that_is_not_done(toy_model):
    pytest.importorskip("vllm")
    engine = VllmEngine(VllmConfig(model=str(toy_model), memory_share=0.3, max_model_len=256, batch_size=2))
    requests = [Request(f"{i} + {i} =", 5) for i in range(5)]
    found = {i: done for batch in engine.generate(requests, done={1}) for i, done in batch.items()}
    assert set(found) == {0, 2, 3, 4}
    for i, done in found.items():
        assert done.prompt_tokens == len(engine.tokenizer.encode(requests[i].prompt))
        assert 1 <= done.completion_tokens <= 5
        assert done.finish_reason in ("stop", "length")


def test_a_model_with_swapped_positions_is_refused(tmp_path):
    from lab.config.finetuning import Swap, TextPositionsConfig

    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "swap.json").write_text(Swap(positions=TextPositionsConfig(kind="nope")).model_dump_json())
    with pytest.raises(ModelError, match=r"swapped tokens or positions.*engine\.kind=local"):
        VllmEngine(VllmConfig(model=str(tmp_path)))
