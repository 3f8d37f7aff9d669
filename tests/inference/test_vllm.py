"""The real engine where vLLM is installed; elsewhere only that its absence is said in one line."""

import importlib.util

import pytest

from lab.config.evaluation import VllmConfig
from lab.errors import ModelError
from lab.inference.engine import Request
from lab.inference.vllm import VllmEngine


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_error_says_what_to_install():
    with pytest.raises(ModelError, match=r"pip install number-lab\[vllm\]"):
        VllmEngine(VllmConfig(model="anything"))


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
