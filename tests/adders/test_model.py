"""What a declared adder computes: each part against torch's own, or worked out by hand."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lab.adders.importing import from_encoder, from_folder
from lab.adders.model import ACTIVATIONS, DeclaredModel, Watch
from lab.adders.spec import check, load
from lab.errors import ModelError

ROOT = Path(__file__).parents[2]
TEMPLATES = {"prompt": ["a9..0", 10, "b9..0", 11], "answer": ["s10..0"]}
IDS = torch.randint(0, 12, (5, 32), generator=torch.Generator().manual_seed(0))


def table(*shape: int, seed: int = 0) -> list:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).tolist()


def model(layers: list, numbers: dict | None = None, **more: object) -> DeclaredModel:
    numbers = {"e": table(12, 4)} | (numbers or {})
    own = {"embedding": "e", "layers": layers, "head": "e"} | more
    return DeclaredModel(check({"numbers": numbers, "model": own, **TEMPLATES}))


def test_references_stand_for_what_the_table_of_them_says():
    numbers = {"e": [[1.0, 2.0]] * 10, "w": [[1.0, 2.0], [3.0, 4.0]]}
    value = {
        "numbers": numbers,
        "model": {"embedding": "e", "layers": [], "head": "e"},
        "prompt": ["a0..9", "b0..9"],
        "answer": ["s0..10"],
    }
    from lab.adders.model import Tensors
    from lab.adders.references import resolve

    built = DeclaredModel(check(value | {"vocabulary": 10}))
    for reference, expected in [
        ("w", [[1, 2], [3, 4]]),
        ("-w.T", [[-1, -3], [-2, -4]]),
        (["w", "w.T"], [[5, 11], [11, 25]]),
        ([0.5, "w"], [[0.5, 1], [1.5, 2]]),
        ({"join": ["w", "-w"]}, [[1, 2], [3, 4], [-1, -2], [-3, -4]]),
        ({"join": [1, 2]}, [1, 2]),
        ({"transpose": {"join": [[[1, 2]]]}}, [[1], [2]]),
        ({"ramp": 2}, [[2 * v] for v in range(10)]),
        ({"arc": [2, 0, math.pi]}, [[2 * (-1) ** v, 0] for v in range(10)]),
    ]:
        found = resolve(reference, Tensors(built.tables, 10), "")
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float32), atol=1e-5, rtol=0)


def test_attention_with_a_bias_by_distance_is_worked_out_by_hand():
    # one number a token; equal scores less 1 a token of distance: two tokens weigh 1 and 1 / e
    numbers = {"e": [[float(v)] for v in range(12)]}
    layers = [{"attention": {"q": {"b": [0]}, "k": {"b": [0]}, "alibi": 1, "residual": 0}}]
    found = model(layers, numbers, head={"w": [[1]] * 12})(torch.tensor([[3, 7]]))[0, :, 0]
    assert found.tolist() == pytest.approx([3, (7 + 3 / math.e) / (1 + 1 / math.e)])


def test_sinusoids_are_those_of_the_paper_and_a_learned_table_is_added_as_it_is():
    zero = {"e": [[0.0] * 4] * 12}
    one_hot = {"w": [[float(i == j) for j in range(4)] for i in range(4)] + [[0.0] * 4] * 8}
    found = model([], zero, positions={"sinusoidal": 10_000}, head=one_hot)(IDS)[0, :, :4]
    assert found[3].tolist() == pytest.approx([math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)], abs=1e-6)
    learned = table(32, 4, seed=1)
    torch.testing.assert_close(model([], zero, positions=learned, head=one_hot)(IDS)[0, :, :4], torch.tensor(learned))


def test_the_nearest_row_has_the_highest_logit():
    found = model([], {"e": table(12, 4)}, head={"nearest": "e"})(IDS)
    assert (found.argmax(-1) == IDS).all()


def test_layers_that_repeat_are_the_same_layers_twice_and_scales_are_factors():
    layer = {"ffn": {"act": "tanh", "up": "w", "branch": 0.5, "residual": 2}}
    numbers = {"w": table(4, 4, seed=1)}
    torch.testing.assert_close(model([layer], numbers, times=2)(IDS), model([layer, layer], numbers)(IDS))
    x = torch.tensor(table(12, 4))[IDS]
    expected = (2 * x + 0.5 * torch.tanh(x @ torch.tensor(numbers["w"]).T)) @ torch.tensor(table(12, 4)).T
    torch.testing.assert_close(model([layer], numbers)(IDS), expected)


FULL = {
    "norm": {"kind": "layer", "gain": "g"}, "heads": 4, "kv_heads": 2, "q": "q", "k": {"w": "k", "b": "kb"}, "v": "v", "o": "q",  # noqa: E501
    "q_norm": {"kind": "rms"}, "k_norm": {"kind": "rms", "gain": "n"}, "alibi": "s",
}  # fmt: skip
NUMBERS = {
    "e": table(12, 8), "q": table(8, 8, seed=1), "k": table(4, 8, seed=2), "kb": table(4, seed=3), "v": table(4, 8, seed=4),  # noqa: E501
    "g": table(8, seed=5), "n": table(2, seed=6), "s": [0.1, 0.2, 0.3, 0.4],
}  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 31), st.sampled_from(list(ACTIVATIONS)), st.booleans())
def test_no_part_sees_what_follows_and_the_last_positions_alone_are_what_all_give(cut, act, post):
    layer = {"attention": FULL | {"post": post}, "ffn": {"act": act, "up": "q", "gate": "q", "down": "q"}}
    own = {"embedding": "e", "rope": {"theta": 100}, "layers": [layer, layer], "head": "e"}
    built = DeclaredModel(check({"numbers": NUMBERS, "model": own, "precision": "float64", **TEMPLATES}))
    whole = built(IDS)
    other = torch.cat([IDS[:, :cut], (IDS[:, cut:] + 1) % 12], dim=1)
    torch.testing.assert_close(built(other)[:, :cut], whole[:, :cut], rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(built(IDS[:, :cut]), whole[:, :cut], rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(built(IDS, cut), whole[:, -cut:], rtol=1e-8, atol=1e-8)


def test_weights_that_are_put_in_are_used_and_its_own_change_nothing():
    built = model([{"attention": FULL}], NUMBERS)
    watch = Watch()
    whole = built(IDS[:1], watch=watch)
    own = [weights[0] for weights in watch.seen]
    torch.testing.assert_close(built(IDS[:1], watch=Watch(instead=own)), whole)
    torch.testing.assert_close(built(IDS[:1], 1, watch=Watch(instead=own)), whole[:, -1:])
    first = torch.zeros(1, 32, 32)
    first[:, :, 0] = 1
    assert not torch.allclose(built(IDS[:1], watch=Watch(instead=[first])), whole)


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_folder_of_hugging_face_is_declared_with_the_same_logits(kind, tied, tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    if kind == "llama":
        config = LlamaConfig(
            vocab_size=12, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, tie_word_embeddings=tied, attention_bias=tied, head_dim=8,
        )  # fmt: skip
        original = LlamaForCausalLM(config).eval()
    else:
        original = GPT2LMHeadModel(
            GPT2Config(vocab_size=12, n_embd=16, n_layer=2, n_head=4, n_positions=40, tie_word_embeddings=tied)
        ).eval()
    for weight in original.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    whole: Any = original
    (whole.transformer if kind == "gpt2" and tied else whole).save_pretrained(tmp_path)  # with bare names
    built = DeclaredModel(check(from_folder(tmp_path, **TEMPLATES)))
    torch.testing.assert_close(built(IDS), original(IDS).logits, rtol=1e-4, atol=1e-4)
    assert sum(t.numel() for t in built.tables.values()) == sum(p.numel() for p in original.parameters())


@pytest.mark.parametrize(("first", "act"), [(True, "gelu"), (False, "relu"), (False, nn.SiLU())])
def test_an_encoder_of_torch_is_declared_with_the_same_logits(first, act):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=first, activation=act)
    norm = nn.LayerNorm(16) if first else None
    encoder = nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=False).eval()
    embedding, head, positions = nn.Embedding(12, 16), nn.Linear(16, 12), torch.randn(40, 16)
    built = DeclaredModel(check(from_encoder(embedding, encoder, head, positions, **TEMPLATES)))
    mask = nn.Transformer.generate_square_subsequent_mask(32)
    expected = head(encoder(embedding(IDS) + positions[:32], mask=mask, is_causal=True))
    torch.testing.assert_close(built(IDS), expected, rtol=1e-4, atol=1e-5)


def test_weights_of_a_folder_that_were_cut_off_are_one_line(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(100)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "model.safetensors").write_bytes((tmp_path / "model.safetensors").read_bytes()[:200])
    with pytest.raises(
        ModelError, match=r"model\.safetensors cannot be loaded: it is damaged or incomplete"
    ) as refused:
        from_folder(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "No such file"),
        ({"config.json": "{"}, "Expecting"),
        ({"config.json": '{"model_type": "mamba"}'}, "only llama and gpt2 can be imported"),
        ({"config.json": '{"model_type": "gpt2", "n_layer": 1}'}, "is missing"),
    ],
)
def test_a_folder_that_cannot_be_imported_is_one_line(files, said, tmp_path):
    from safetensors.torch import save_file

    if files:
        save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=said) as refused:
        from_folder(tmp_path)
    assert "\n" not in str(refused.value)


def test_the_plain_block_of_47_numbers_gives_the_logits_that_its_class_gave():
    # computed by the class that trained it, TinyAdder of commit 4019bd5, for 1234567890 + 9876543210
    built = DeclaredModel(load(ROOT / "experiments" / "plain-adder" / "adder_47.json"))
    row = [0, *(0, 9, 8, 7, 6, 5, 4, 3, 2, 1), 0, 0, *range(10), 0]
    found = built(torch.tensor([[*row, 0, 0]]))[0, -1]
    assert found.tolist() == pytest.approx(GOLDEN, rel=1e-6)


GOLDEN = [
    -1026.922607421875,
    -1009.1883544921875,
    -1020.7467651367188,
    -1044.7039794921875,
    -1078.4287109375,
    -1121.989501953125,
    -1182.9512939453125,
    -1260.2945556640625,
    -1387.521484375,
    -1671.5084228515625,
]
