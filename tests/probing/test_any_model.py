"""Every family of causal models that TransformerLens opens is opened, whatever its architecture, and generates as
transformers does; what cannot be opened or measured is refused in one line."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from lab.config.schema import ModelConfig
from lab.engines.engine import Request, Sampling
from lab.engines.local import LocalEngine
from lab.errors import LabError, ModelError, TaskError
from lab.models import pretrained
from lab.probing import interventions
from lab.probing.addition import ablation, alignment, helix, heuristics, interchange, probes, surgery
from lab.probing.addition.columns import ColumnPairs
from lab.probing.addition.pairs import carry_only
from lab.probing.addition.positions import TextSums
from lab.probing.answered import Answered
from lab.probing.bridge import Subject, bridge
from lab.probing.components import Component
from lab.probing.instruments import atp_star, attribution, edges, lenses, patching, path_patching

ROOT = Path(__file__).parents[2]
LLAMA = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 128,
}  # fmt: skip
GROUPED = LLAMA | {"num_key_value_heads": 2, "head_dim": 8}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}
FAMILIES = {
    "gpt2": GPT,
    "gptj": GPT | {"rotary_dim": 4},
    "gpt_neo": {
        "hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 128,
        "attention_types": [[["global", "local"], 1]],
    },
    "gpt_neox": LLAMA,
    "gpt_bigcode": GPT,
    "opt": LLAMA | {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": LLAMA,
    "mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4},
    "llama": GROUPED,
    "mistral": GROUPED,
    "mixtral": GROUPED,
    "qwen2": GROUPED,
    "qwen3": GROUPED,
    "gemma": GROUPED,
    "gemma2": GROUPED,
    "gemma3_text": GROUPED,
    "phi": LLAMA,
    "phi3": GROUPED,
    "olmo2": GROUPED,
    "stablelm": LLAMA | {"num_key_value_heads": 4},
    "smollm3": GROUPED,
}  # fmt: skip
PARALLEL = {"gptj", "gpt_neox", "falcon", "phi"}
"""Families whose attention and MLP read the same stream."""
SAMPLED = ["gptj", "opt", "bloom", "gemma2", "qwen3"]
"""One family of each kind of attention."""


def tokenizer(*longer: str) -> PreTrainedTokenizerFast:
    words = ["<unk>", "<end>", *"0123456789+= Ad:", *longer]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    pattern = r"\d+" if longer else "."
    made.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", unk_token="<unk>")


def drawn(kind: str, words: PreTrainedTokenizerFast, **keys: object) -> Any:
    """A model with random weights, several times as large as usual, so that its most likely tokens are clear."""
    torch.manual_seed(0)
    room = 16  # tokenizers of some architectures add words of their own
    ends = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    config = AutoConfig.for_model(kind, vocab_size=len(words) + room, **{**ends, **FAMILIES[kind], **keys})
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.mul_(4)
    return model


def saved(kind: str, folder: Path, words: PreTrainedTokenizerFast, **keys: object) -> str:
    drawn(kind, words, **keys).save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("kind", FAMILIES)
@torch.inference_mode()
def test_every_family_opens_by_name_with_the_models_own_logits_and_patterns_that_count(kind, tmp_path):
    name = saved(kind, tmp_path, tokenizer())
    subject = Subject.from_name(name, "{a}+{b}=")
    sums = subject.sums([(12, 34), (58, 9)])
    expected_BTV = AutoModelForCausalLM.from_pretrained(name).eval()(sums.tokens_BT).logits
    torch.testing.assert_close(subject.logits(sums), expected_BTV, atol=1e-4, rtol=1e-4)
    assert (subject.layers, subject.heads, subject.width) == (2, 4, 32)
    assert subject.sites == (("pre", "post") if kind in PARALLEL else ("pre", "mid", "post"))
    for layer in range(2):
        z, given = f"blocks.{layer}.attn.hook_z", {"layer": layer, "change": torch.zeros_like}
        _, found = subject.activations(sums, [z], [interventions.pattern(**given)])
        assert found[z].abs().max() < 1e-6
        _, untouched = subject.activations(sums, [z, f"blocks.{layer}.attn.hook_pattern"])
        assert untouched[z].abs().max() > 1e-3
        assert untouched[f"blocks.{layer}.attn.hook_pattern"].triu(1).abs().max() == 0


@pytest.mark.parametrize("kind", FAMILIES)
@torch.inference_mode()
def test_every_family_writes_what_it_writes_alone(kind, tmp_path):
    model, words = pretrained.load(ModelConfig(name=saved(kind, tmp_path, tokenizer()), device="cpu", dtype="float32"))
    prompts = ["Add: 12+9=", "Add: 12+944444444444444=", "1+2=", "Add: 7+9="]
    expected = []
    for prompt in prompts:
        ids = torch.tensor([words(prompt).input_ids])
        for _ in range(10):  # without a cache, a batch or a mask
            ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
        written = ids[0, -10:].tolist()
        said = written[: written.index(1)] if 1 in written else written
        expected.append(words.decode(said, skip_special_tokens=True))
    engine = LocalEngine(model, words, 3)
    found = {i: one for part in engine.generate([Request(prompt, 10) for prompt in prompts]) for i, one in part.items()}
    assert [found[i].text for i in range(len(prompts))] == expected
    assert engine.written == sum(one.completion_tokens for one in found.values())


@pytest.mark.parametrize("kind", SAMPLED)
def test_random_tokens_of_a_family_do_not_depend_on_its_batch(kind, tmp_path):
    model, words = pretrained.load(ModelConfig(name=saved(kind, tmp_path, tokenizer()), device="cpu", dtype="float32"))
    requests = [Request(f"Add: {a}+{7 * a}=", 8) for a in range(5)]
    texts = []
    for size in (1, 5):
        parts = LocalEngine(model, words, size).generate(requests, Sampling(temperature=1.0, seed=4))
        found = {i: one.text for part in parts for i, one in part.items()}
        texts.append([found[i] for i in range(len(requests))])
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 1


def instruments(subject: Subject):
    sums = subject.sums([(1000 + 137 * row, 1000 + 2041 * row % 8999) for row in range(60)])
    pairs, head = carry_only(4, 1, 4, 0), Component("head", 0, 1)
    aligned = [alignment.Aligned(0, 0, "a", 0)]
    return {
        "alignment": lambda: alignment.alignment(subject, {4: sums}),
        "destinations": lambda: alignment.destinations(subject, {4: sums}),
        "ablation": lambda: ablation.ablate(subject, sums, [(head,), (Component("mlp", 1),)]),
        "patching": lambda: patching.patch_heads(subject, pairs),
        "residuals": lambda: patching.patch_residuals(subject, pairs, ["q_k"]),
        "attribution": lambda: attribution.screen(subject, pairs, ["q_k"], 4),
        "atp star": lambda: atp_star.atp_star(subject, pairs),
        "path patching": lambda: path_patching.patch_paths(subject, pairs, [head], path_patching.receivers(subject)),
        "edges": lambda: edges.attribute(subject, pairs, 2),
        "probes": lambda: probes.probe(subject, sums, columns=[2]),
        "interchange": lambda: interchange.interchange_all(subject, 4, columns=[2], train_pairs=8, test_pairs=8),
        "lens": lambda: lenses.logit_lens(subject, ColumnPairs(sums)),
        "helix": lambda: helix.helix(subject, sums, sums, 2, layers=[0]),
        "heuristics": lambda: heuristics.heuristics(subject, sums, 2),
        "surgery": lambda: surgery.surgery(subject, {4: sums}, aligned),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_every_instrument_measures_every_family_or_refuses_it_in_one_line(kind, tmp_path, monkeypatch):
    def every_pair(subject, pairs, batch_size):
        return Answered(subject, pairs).run(batch_size)

    monkeypatch.setattr(Answered, "of_right_pairs", every_pair)  # models drawn at random cannot add
    subject, refused = Subject.from_name(saved(kind, tmp_path, tokenizer()), "Add: {a}+{b}="), {}
    for name, measure in instruments(subject).items():
        try:
            measure()
        except LabError as error:
            refused[name] = str(error)
    assert all("\n" not in reason for reason in refused.values())
    allowed = {"edges", "path patching"} if kind in PARALLEL else set()
    allowed |= {"edges"} if kind in ("gemma2", "gemma3_text", "olmo2", "qwen3") else set()
    allowed |= {"heuristics"} if kind == "mixtral" else set()
    assert set(refused) <= allowed, refused


@pytest.mark.parametrize("kind", ["mamba", "gpt_oss"])
def test_a_model_without_ordinary_attention_is_refused_in_one_line(kind, monkeypatch):
    monkeypatch.setitem(FAMILIES, kind, GROUPED | {"state_size": 4})
    words = tokenizer()
    with pytest.raises(ModelError, match=r"hook_pattern|attention") as refused:
        bridge(kind, drawn(kind, words), TextSums(words, "{a}+{b}="), words)
    assert "\n" not in str(refused.value)


def test_a_model_in_memory_opens_without_a_name_of_its_architecture():
    words, model = tokenizer(), drawn("llama", tokenizer())
    model.config.architectures = None
    assert bridge("mine", model, TextSums(words, "{a}+{b}="), words).layers == 2


@pytest.mark.parametrize("kind", ["gpt2", "gpt_neo", "opt", "gptj"])
def test_sums_longer_than_a_table_of_positions_are_refused_as_such(kind, tmp_path):
    few = {"max_position_embeddings": 64} if "max_position_embeddings" in FAMILIES[kind] else {"n_positions": 64}
    subject = Subject.from_name(saved(kind, tmp_path, tokenizer(), **few), "{a}+{b}=")
    long = subject.sums([(10**40 + 3, 10**40 + 4)])
    with pytest.raises(
        TaskError, match=r"these prompts take 126 tokens, but it reads at most 64; use shorter numbers$"
    ):
        subject.logits(long)
    with pytest.raises(TaskError, match="use shorter numbers"):
        alignment.alignment(subject, {41: long})


@pytest.mark.parametrize(
    "name", ["alignment", "probes", "ablation", "patching", "lens", "helix", "surgery", "heuristics"]
)
def test_every_instrument_refuses_tokens_of_several_digits(name, tmp_path):
    words = tokenizer(*(str(number) for number in range(10, 10_000)))
    subject = Subject.from_name(saved("gpt2", tmp_path, words), "Add: {a}+{b}=")
    with pytest.raises(ModelError, match=r"several digits in one token") as refused:
        instruments(subject)[name]()
    assert "\n" not in str(refused.value)


def test_every_hook_point_of_a_model_is_found_by_each_of_its_names(tmp_path):
    subject = Subject.from_name(saved("qwen3", tmp_path, tokenizer()), "{a}+{b}=")
    sums = subject.sums([(12, 34)])
    found_by_two = 0
    points: dict[str, Any] = subject.bridge.hook_dict
    for name, point in points.items():
        try:
            _, cache = subject.activations(sums, [name])
        except ModelError:  # no run reaches it, or it is switched off
            continue
        assert cache[point.name] is cache[name]
        assert point.name in cache
        found_by_two += point.name != name
    assert found_by_two > 20
    _, cache = subject.activations(sums, ["blocks.1.attn.hook_z"])
    assert cache["blocks.1.attn.o.hook_in"] is cache["blocks.1.attn.hook_z"]
    assert list(cache) == ["blocks.1.attn.hook_z"]
    with pytest.raises(KeyError):
        cache["blocks.0.attn.hook_z"]


def test_the_five_lines_of_the_guide_run_as_they_stand(tmp_path, capsys):
    guide = (ROOT / "docs" / "guides" / "probe.md").read_text()
    (code,) = re.findall(r"## Any model in five lines.*?```python\n(.*?)```", guide, re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) == 5
    name = saved("qwen2", tmp_path, tokenizer())
    exec(code.replace("HuggingFaceTB/SmolLM2-135M", name), {})
    assert "layer" in capsys.readouterr().out
