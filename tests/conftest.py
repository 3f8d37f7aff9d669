"""A toy model on disk: a random two-layer Llama over bytes, small enough for the real commands to run in seconds.

Tests run in as many processes as there are cores (pytest-xdist), each with one thread, its commands included.
"""

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("lab", deadline=None)  # tests must not fail because the machine is busy
hypothesis.settings.load_profile("lab")
# toy models gain nothing from a second thread, and threads of several processes wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    # pytest-xdist would begin with the files that have most tests, and end with one whose only test takes a minute
    config.option.loadscopereorder = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """For fast tests, files that have only slow ones are not even imported: some import large packages."""
    fast = config.option.markexpr == "not slow" and collection_path.suffix == ".py"
    return (fast and "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8")) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: no process is left alone with a long one at the end."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def toy_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "toy"
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(["<eos>", *alphabet])}, merges=[]))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<eos>")
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            bos_token_id=None,
            eos_token_id=0,
            pad_token_id=0,
            initializer_range=0.2,  # far enough from uniform for greedy choices to vary
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(toy_model: Path):
    """The toy model's tokenizer of bytes."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(toy_model)
