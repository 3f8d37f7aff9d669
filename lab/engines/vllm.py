"""Generation with vLLM, on GPUs or on a CPU. It needs an environment of its own (`make vllm`), because it requires
older versions of some libraries than the lab.

Adapters stay apart from the weights, as LoRA requests. Models that vLLM would compute differently from the lab are
refused before vLLM is imported: those with swapped tokens or positions, and those from scratch.
"""

import importlib
import itertools
import time
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lab.config.evaluation import VllmConfig
from lab.engines.engine import GREEDY, Completion, Request, Sampling, TokenizingEngine
from lab.errors import ModelError, in_one_line
from lab.models.sources import base_of, locate
from lab.models.swaps import recorded
from lab.text.examples import encode_prompt

_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks for which vLLM can reserve room; for any other rank, the next larger one is reserved."""


class Subject(NamedTuple):
    """What vLLM is to load."""

    base: str
    """The folder or hub name of a whole model."""
    adapters: Path | None
    """The folder of adapters on it, if there are any."""
    rank: int = 0
    """The rank of the adapters."""


def subject(name: str) -> Subject:
    """What vLLM loads for a name: an embedded model, a folder of a model or of adapters, a run of lab.finetune, or a
    model on the hub.

    Raises ModelError for a model that vLLM would compute differently from the lab.
    """
    for folder in (Path(name), Path(name) / "model"):
        if recorded(folder).of_model:
            raise ModelError(f"{name} has swapped tokens or positions (swap.json): use engine.kind=local")
        if "number_llama" in _said(folder / "config.json").get("model_type", ""):
            raise ModelError(f"{name} is a model from scratch, which vLLM does not know: use lab pretrain or lab ask")
        said = _said(folder / "adapter_config.json")
        if said:
            trained_on = _said(Path(name) / "config.yaml").get("model", {}).get("name")
            return Subject(locate(trained_on or base_of(folder)), folder, said["r"])
    return Subject(locate(name), None)


def _said(file: Path) -> dict[str, Any]:
    """The mapping in a file of JSON or YAML; empty if there is no such file."""
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise ModelError(f"{file}: {in_one_line(error)}") from None
    if not isinstance(said, dict):
        raise ModelError(f"{file}: not a config")
    return said


class VllmEngine(TokenizingEngine):
    def __init__(self, config: VllmConfig) -> None:
        """Raises ModelError, in one line, if vLLM is not installed, cannot load the model, or would compute it
        differently from the lab (see `subject`)."""
        base, adapters, rank = subject(config.model)
        try:
            vllm: Any = importlib.import_module("vllm")  # the package, not this file
        except ImportError as error:
            raise ModelError(f"{error}; `make vllm` sets up an environment for it, or use engine.kind=local") from error
        self.config, self._sampling_params = config, vllm.SamplingParams
        room = next((size for size in _RANKS if size >= rank), rank)
        try:
            self._model = vllm.LLM(
                model=base,
                dtype=config.dtype,
                tensor_parallel_size=config.tensor_parallel,
                gpu_memory_utilization=config.memory_share,
                max_model_len=config.max_model_len,
                **({"enable_lora": True, "max_lora_rank": room} if adapters else {}),
            )
        except Exception as error:  # the hub, CUDA and vLLM raise dozens of types
            raise ModelError(
                f"vLLM cannot load {config.model!r} ({type(error).__name__}: {in_one_line(error)})"
            ) from error
        self._adapters = _request(adapters) if adapters else None
        self.format = recorded(adapters).format if adapters else self.format
        self.tokenizer = self._model.get_tokenizer()
        self.description = f"vllm {vllm.__version__}, tensor parallel {config.tensor_parallel}"

    def generate(
        self, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
    ) -> Iterator[dict[int, Completion]]:
        """See `Engine`. vLLM itself shares prefixes and forms batches. The batches here only limit how many answers are
        lost if the process is killed."""
        left = iter([index for index in range(len(requests)) if index not in done])
        while batch := list(itertools.islice(left, self.config.batch_size)):
            began = time.perf_counter()
            prompts = [encode_prompt(requests[i].prompt, self.tokenizer) for i in batch]
            outputs = self._model.generate(
                [{"prompt_token_ids": ids} for ids in prompts],
                [self._parameters(requests[i], sampling, i) for i in batch],
                use_tqdm=False,
                lora_request=self._adapters,
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


def _request(adapters: Path) -> Any:
    return importlib.import_module("vllm.lora.request").LoRARequest("adapters", 1, str(adapters.resolve()))
