"""A real model whose answers show how many tokens it may write: a GPT-2 that writes 77 for ever, two digits a token."""

from pathlib import Path
from statistics import mean

import pytest

from lab.benchmarks.results import Scored


@pytest.fixture(scope="session")
def sevens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "sevens"
    pairs = [(a, b) for a in "0123456789" for b in "0123456789"]
    words = ["<eos>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *(a + b for a, b in pairs)]
    bpe = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=pairs))
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<eos>", pad_token="<eos>")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    ends = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(words), n_positions=1024, n_embd=8, n_layer=1, n_head=1, **ends))
    with torch.no_grad():  # the last layer writes the same vector everywhere, and only the word 77 agrees with it
        model.transformer.ln_f.weight.zero_()
        model.transformer.ln_f.bias.fill_(1.0)
        model.transformer.wte.weight.zero_()[words.index("77")] = 1.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def in_the_lab(sevens: Path):
    """The means of the plugins' figures when `lab evaluate`'s own engine asks the model a benchmark's questions."""
    from lab.benchmarks.benchmark import ask
    from lab.config.evaluation import LocalEngineConfig
    from lab.config.schema import ModelConfig
    from lab.engines.from_config import open_engine
    from lab.plugins.shared import figures, open_cached

    engine, _ = open_engine(LocalEngineConfig(model=ModelConfig(name=str(sevens), dtype="float32")))

    def measured(config: str, seed: int) -> dict[str, float]:
        samples = [sample for batch in ask(open_cached(config, seed), engine) for sample in batch]
        scores = [figures(Scored(sample.readings)) for sample in samples]
        return {name: mean(score[name] for score in scores) for name in scores[0]}

    return measured
