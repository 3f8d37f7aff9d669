"""Generation with vLLM, for models that need one or several GPUs (the extra `vllm`)."""

import importlib
import itertools
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from lab.config.evaluation import VllmConfig
from lab.errors import ModelError
from lab.inference.engine import GREEDY, Completion, Request, Sampling, TokenizingEngine
from lab.models.swaps import recorded
from lab.text.examples import encode_prompt


class VllmEngine(TokenizingEngine):
    def __init__(self, config: VllmConfig) -> None:
        """Raises ModelError, in one line, if vLLM is not installed or cannot load the model, or if the model has
        swapped tokens or positions, which vLLM would ignore."""
        for folder in (Path(config.model), Path(config.model) / "model"):
            if recorded(folder).of_model:
                raise ModelError(f"{config.model} has swapped tokens or positions (swap.json): use engine.kind=local")
        try:
            vllm: Any = importlib.import_module("vllm")  # the package, not this file
        except ImportError as error:
            raise ModelError(f"{error}; pip install number-lab[vllm], or use engine.kind=local") from error
        self.config, self._sampling_params = config, vllm.SamplingParams
        try:
            self._model = vllm.LLM(
                model=config.model,
                tensor_parallel_size=config.tensor_parallel,
                gpu_memory_utilization=config.memory_share,
                max_model_len=config.max_model_len,
            )
        except Exception as error:  # the hub, CUDA and vLLM raise dozens of types
            reason = " ".join(str(error).split())[:160]
            raise ModelError(f"vLLM cannot load {config.model!r} ({type(error).__name__}: {reason})") from error
        self.tokenizer = self._model.get_tokenizer()
        self.description = f"vllm {vllm.__version__}, tensor parallel {config.tensor_parallel}"

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. vLLM shares prefixes and forms batches itself; our batches only limit what a kill can lose."""
        left = iter([index for index in range(len(requests)) if index not in done])
        while batch := list(itertools.islice(left, self.config.batch_size)):
            began = time.perf_counter()
            prompts = [encode_prompt(requests[i].prompt, self.tokenizer) for i in batch]
            outputs = self._model.generate(
                [{"prompt_token_ids": ids} for ids in prompts],
                [self._parameters(requests[i], sampling, i) for i in batch],
                use_tqdm=False,
            )
            seconds = (time.perf_counter() - began) / len(batch)
            yield {
                i: Completion(
                    self.whole(ids, output.outputs[0].text),
                    len(ids),
                    len(output.outputs[0].token_ids),
                    seconds,
                    output.outputs[0].finish_reason or "stop",
                )
                for i, ids, output in zip(batch, prompts, outputs, strict=True)
            }

    def _parameters(self, request: Request, sampling: Sampling, index: int):
        return self._sampling_params(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=request.max_tokens,
            seed=sampling.seed_of(index) if sampling.temperature else None,
        )
