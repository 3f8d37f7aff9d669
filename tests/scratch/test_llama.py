"""The logits are the same with a cache and without, with padding and without, after saving, and as Llama's own."""

import itertools

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from lab.config.pretraining import SIZES
from lab.errors import ModelError
from lab.parts.locality import Locality
from lab.scratch.llama import NumberLlama, NumberLlamaConfig, build
from lab.text.examples import IGNORED
from tests.from_scratch import built, config

WORDS = ["<pad>", "<begin>", "<end>", "=", "<add_integer>", ".", *map(str, range(10)), "12", "345", "<0.1>"]
PAD = 0
ENCODINGS = ["rope", "nope", "alibi", "alibi_released", "fire", "relative", "learned"]
ALLOWED = [
    *itertools.product(ENCODINGS, ["plain", "coupled"]),
    *[("rope local", "plain"), ("rope local", "coupled"), ("learned local", "coupled"), ("learned", "abacus")],
    *[("nope sticks", "plain"), ("relative window sticks", "coupled"), ("learned local sticks", "coupled")],
    *[("learned far", "coupled"), ("relative far", "coupled"), ("rope clipped", "plain"), ("rope clipped", "coupled")],
    *[("rope", "countdown"), ("relative window downward", "countdown"), ("relative downward", "counted")],
]
PROMPTS = ["<begin> 5 2 <add_integer> 7 =", "<begin> 12 345 . 8 <add_integer> <0.1> 3 1 =", "<begin> 9 <add_integer>"]


def prompts(kind: str) -> list[str]:
    """The prompts that a model with these ids can complete: countdown ids need whole questions."""
    return PROMPTS[:2] if kind in ("countdown", "counted") else PROMPTS


def tiny(encoding: str = "rope", kind: str = "plain", segments: bool = False, largest: int = 64) -> NumberLlama:
    """A tiny model with weights so far from zero that its choices are distinct. "rope local" is rope with a slope of
    locality for each head, and with ids that go on through the point. With "sticks", one head of four is a
    stick-breaking head; with "downward", two are, and one of them walks down the places; with "far", all far keys
    together weigh no more than one; with "clipped", no key is seen more than two ids away."""
    torch.manual_seed(0)
    name, *more = encoding.split()
    local = "local" in more
    config = NumberLlamaConfig(  # with the keys that it had before there were parts
        encoding=name,
        locality=[0.5, 1, 0, 0.25] if local else 0,
        window=2 if "window" in more else 0,
        stick_breaking=int("sticks" in more) + 2 * ("downward" in more),
        downward=int("downward" in more),
        far_at_most=int("far" in more),
        clip_distance=2 * ("clipped" in more),
        through_point=local,
        position_kind=kind,
        largest=largest,
        segments=segments,
        vocabulary=WORDS,
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.2,
        pad_token_id=PAD,
        bos_token_id=1,
        eos_token_id=2,
    )
    return NumberLlama(config).eval()


def encode(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


def padded(texts: list[str], side: str) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [encode(text) for text in texts]
    longest = max(map(len, rows))
    padding = [[PAD] * (longest - len(row)) for row in rows]
    both = [gap + row if side == "left" else row + gap for row, gap in zip(rows, padding, strict=True)]
    ids = torch.tensor(both)
    return ids, (ids != PAD).long()


@torch.no_grad()
def generated(model: NumberLlama, ids: torch.Tensor, mask: torch.Tensor, tokens: int = 6, **others):
    return model.generate(  # type: ignore[operator]
        ids, attention_mask=mask, do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens,
        output_logits=True, return_dict_in_generate=True, **others,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "kind"), ALLOWED)
def test_generation_with_a_cache_is_what_the_whole_row_gives(encoding, kind):
    model = tiny(encoding, kind, segments=True)
    ids, mask = padded(prompts(kind), "left")
    out = generated(model, ids, mask)
    rows, whole_mask = out.sequences, torch.cat([mask, torch.ones(len(ids), 6, dtype=torch.long)], dim=1)
    with torch.no_grad():
        whole = model(rows, attention_mask=whole_mask).logits
    torch.testing.assert_close(torch.stack(out.logits, dim=1), whole[:, ids.shape[1] - 1 : -1], atol=1e-5, rtol=0)
    assert generated(model, ids, mask, use_cache=False).sequences.equal(rows)
    # and what is generated does not depend on the rows beside it
    for row, text in zip(rows, prompts(kind), strict=True):
        alone = torch.tensor([encode(text)])
        sequence = generated(model, alone, torch.ones_like(alone)).sequences[0]
        assert sequence.equal(row[-len(sequence) :])


@pytest.mark.parametrize(("encoding", "kind"), ALLOWED)
def test_padding_on_the_right_needs_no_mask_and_eager_attention_agrees(encoding, kind):
    model = tiny(encoding, kind)
    ids, mask = padded(PROMPTS, "right")
    with torch.no_grad():
        bare, masked = (model(ids, attention_mask=given).logits for given in (None, mask))
        alone = [model(torch.tensor([encode(text)])).logits[0] for text in PROMPTS]
        if model.beyond_scores is None:  # own attention has only one implementation
            model.set_attn_implementation("eager")
        eager = model(ids).logits
    torch.testing.assert_close(bare, eager, atol=1e-5, rtol=0)
    torch.testing.assert_close(bare[mask == 1], masked[mask == 1], atol=1e-5, rtol=0)
    torch.testing.assert_close(bare[mask == 1], torch.cat(alone), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("encoding", "kind"), [*((name, "coupled") for name in ENCODINGS), *ALLOWED[-11:]])
def test_what_was_saved_is_loaded_with_the_same_logits(encoding, kind, tmp_path):
    model = tiny(encoding, kind, segments=True)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(loaded, NumberLlama)
    ids, mask = padded(prompts(kind), "left")
    with torch.no_grad():
        assert loaded(ids, attention_mask=mask).logits.equal(model(ids, attention_mask=mask).logits)
    assert generated(loaded, ids, mask).sequences.equal(generated(model, ids, mask).sequences)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}


def test_rope_with_plain_ids_is_llama():
    model = tiny()
    plain = LlamaForCausalLM(LlamaConfig(**{
        key: value for key, value in model.config.to_dict().items() if key in LlamaConfig().to_dict()
    })).eval()  # fmt: skip
    plain.load_state_dict(model.state_dict())
    for side in ("left", "right"):
        ids, mask = padded(PROMPTS, side)
        with torch.no_grad():
            ours = model(ids, attention_mask=mask).logits
            theirs = plain(ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0)).logits
        torch.testing.assert_close(ours[mask == 1], theirs[mask == 1])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_loss_is_the_cross_entropy_of_the_labels_that_count(encoding):
    model = tiny(encoding, "coupled")
    ids, _ = padded(PROMPTS, "right")
    labels = torch.full_like(ids, IGNORED)
    labels[0, 4:6] = torch.tensor([9, 2])
    labels[1, 3] = 7
    with torch.no_grad():
        every = model(ids).logits
        expected = sum(cross_entropy(every[b, t], labels[b, t]) for b, t in [(0, 4), (0, 5), (1, 3)])
        output = model(ids, shift_labels=labels)
        torch.testing.assert_close(output.loss, expected / 3)
        torch.testing.assert_close(output.logits, torch.stack([every[0, 4], every[0, 5], every[1, 3]]))
        for items in (5, torch.tensor(5)):
            torch.testing.assert_close(model(ids, shift_labels=labels, num_items_in_batch=items).loss, expected / 5)
        torch.testing.assert_close(model(ids, logits_to_keep=2).logits, every[:, -2:])
        torch.testing.assert_close(model(ids, logits_to_keep=torch.tensor([1, 3])).logits, every[:, [1, 3]])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gradients_are_those_of_the_loss_over_all_logits(encoding):
    ids, _ = padded([f"{text} 5 <end>" for text in PROMPTS], "right")
    labels = torch.where(ids > 3, ids, IGNORED)
    ours, plain = tiny(encoding, "coupled"), tiny(encoding, "coupled")
    ours(ids, shift_labels=labels).loss.backward()
    cross_entropy(plain(ids).logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED).backward()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_everything_is_trained_and_bfloat16_comes_near(encoding):
    model = tiny(encoding, "coupled", segments=True).train()
    ids, _ = padded([f"{text} 5 <end>" for text in PROMPTS], "right")
    loss = model(ids, shift_labels=ids).loss
    loss.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(ids, shift_labels=ids).loss
    rounded.backward()
    assert rounded.item() == pytest.approx(loss.item(), rel=0.03)


@pytest.mark.parametrize(
    ("encoding", "shifted", "stretched"),
    [
        ("rope", True, False),
        ("rope local", True, False),
        ("nope", True, True),
        ("alibi", True, False),
        ("learned", False, False),
    ],
)
def test_which_changes_of_position_ids_an_encoding_does_not_notice(encoding, shifted, stretched):
    model, ids = tiny(encoding), torch.tensor([encode(PROMPTS[0])])
    positions = torch.arange(ids.shape[1])[None]
    with torch.no_grad():
        base, shift, stretch = (model(ids, position_ids=p).logits for p in (positions, positions + 9, positions * 3))
    assert torch.allclose(base, shift, atol=1e-4) == shifted
    assert torch.allclose(base, stretch, atol=1e-4) == stretched


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_packed_problems_see_each_other_however_their_ids_jump(encoding):
    """If LlamaModel is given the ids, transformers takes such a row for several, and masks them from each other."""
    model = tiny(encoding, "coupled", largest=128)
    rows = [f"<begin> {digit} <add_integer> 2 = 4 <end> <begin> 5 <add_integer> 3 =" for digit in "12"]
    ids = torch.tensor([encode(row) for row in rows])
    positions = model.positions(ids) + 60 * (torch.arange(ids.shape[1]) < 7)
    with torch.no_grad():
        one, other = model(ids, position_ids=positions).logits[:, -1]
    assert (one - other).abs().max() > 1e-3


def test_a_learned_table_ends_and_coupled_ids_go_round():
    long = torch.tensor([encode("<begin> " + "7 " * 20)])
    for kind in ("plain", "abacus"):
        with pytest.raises(ModelError, match=r"^a row has position id 20, but only ids below 16 have an embedding"):
            tiny("learned", kind, largest=16)(long)
    with pytest.raises(ModelError, match=r"^a row has position id 16, but only ids below 16 have an embedding"):
        generated(tiny("learned", largest=16), long[:, :14], torch.ones(1, 14).long())
    assert tiny("learned", "coupled", largest=16)(long).logits.isfinite().all()
    assert tiny("rope", "plain", largest=16)(long).logits.isfinite().all()


def test_a_cache_without_the_ids_of_what_is_in_it_is_refused():
    ids, _ = padded(PROMPTS[:1], "left")
    for encoding, given in (("alibi", None), ("alibi", torch.tensor([[6]])), ("rope", None)):
        model = tiny(encoding, "coupled" if encoding == "rope" else "plain")
        cache = model(ids, use_cache=True).past_key_values
        with pytest.raises(ModelError, match="need part_inputs, which are computed from whole rows"):
            model(ids[:, :1], position_ids=given, past_key_values=cache)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_named_by_their_parameters(size):
    millions = {"M": 1, "B": 1000}[size[-1]] * float(size[:-1])
    with torch.device("meta"):
        own, shared = (build(config(size=size, key_value_heads=heads), WORDS) for heads in ("as_heads", "paper"))
    layers, _, _, heads, key_value_heads = SIZES[size]
    assert shared.parameters_without_embeddings() / 1e6 == pytest.approx(millions, rel=0.1)
    assert own.parameters_without_embeddings() / 1e6 == pytest.approx(millions, rel=0.22 if layers > 4 else 0.15)
    assert (own.config.num_key_value_heads, shared.config.num_key_value_heads) == (heads, key_value_heads)


def test_the_sizes_of_the_paper_by_hand():
    """Layers x (query and output, key and value, feed-forward, two norms) and the last norm; a vocabulary adds none."""
    expected = {
        "0.1B": 8 * (2 * 1024**2 + 2 * 1024 * 256 + 3 * 1024 * 3584 + 2 * 1024) + 1024,
        "0.9B": 16 * (2 * 2048**2 + 2 * 2048 * 512 + 3 * 2048 * 7168 + 2 * 2048) + 2048,
        "3B": 24 * (2 * 3072**2 + 2 * 3072 * 768 + 3 * 3072 * 10752 + 2 * 3072) + 3072,
    }
    for size, count in expected.items():
        with torch.device("meta"):
            made = build(config({"learned_ids": {}}, size=size, key_value_heads="paper"), WORDS)
            assert made.parameters_without_embeddings() == count


def test_a_seed_makes_the_same_weights_and_another_seed_others():
    parts = {"fire": {}, "segments": {}}
    first, again, other = (built(WORDS, parts, seed, size="0.2M").state_dict() for seed in (1, 1, 2))
    assert all(first[name].equal(again[name]) for name in first)
    drawn = [name for name, weight in first.items() if weight.ndim > 1]
    assert not any(first[name].equal(other[name]) for name in drawn)
    assert first["lm_head.weight"].std().item() == pytest.approx(0.02, rel=0.1)
    assert all(weight.dtype == torch.float32 for weight in first.values())
    assert not any("bias" in name for name in first if name.startswith("model."))


def test_a_vocabulary_without_the_words_of_a_row_is_refused():
    with pytest.raises(ModelError, match=r"has no <pad>, <begin>, <end>, =$"):
        build(config(), ["0", "1"])


@torch.inference_mode()
def test_a_bound_on_far_keys_changes_rows_that_have_more_of_them_and_can_be_taken_away():
    model = tiny("learned", "coupled")
    short, long = (torch.tensor([encode(f"<begin> {row} =")]) for row in ("5 2 <add_integer> 7", "1 2 3 4 5 6 7 8 9"))
    before = [model(ids).logits for ids in (short, long)]
    model.change_parts({"far_digits": {"at_most": 1}})
    assert torch.equal(model(short).logits, before[0])
    assert not torch.allclose(model(long).logits, before[1])
    model.change_parts({"far_digits": None})
    assert torch.equal(model(long).logits, before[1])
    with pytest.raises(ModelError, match=r"far_digits needs a model with parts\.coupled_ids or parts\.abacus_ids"):
        tiny("nope").change_parts({"far_digits": {"at_most": 1}})


@torch.inference_mode()
def test_learned_slopes_count_like_given_ones_and_stay_when_a_model_is_saved_or_far_keys_are_bounded(tmp_path):
    ids, slopes = torch.tensor([encode("<begin> 1 2 3 4 5 6 7 8 9 =")]), [0.5, 1.0, 0.0, 0.25]
    learned, given = (built(WORDS, {"coupled_ids": {}, "locality": {"slope": slope}}) for slope in ("learned", slopes))
    learned.parts["locality"].load_state_dict({"learned": torch.tensor(slopes) / Locality.rate})
    assert torch.allclose(learned(ids).logits, given(ids).logits, atol=1e-6)
    learned.save_pretrained(tmp_path)
    for model in (learned, given):
        model.change_parts({"far_digits": {"at_most": 2}})
    assert torch.allclose(learned(ids).logits, given(ids).logits, atol=1e-6)
    learned.change_parts({"far_digits": None})
    assert learned(ids).logits.equal(AutoModelForCausalLM.from_pretrained(tmp_path)(ids).logits)


@torch.inference_mode()
def test_to_sharpen_is_to_multiply_what_queries_and_keys_give():
    model, other, ids = tiny("learned"), tiny("learned"), torch.tensor([encode("<begin> 5 2 <add_integer> 7 =")])
    before = model(ids).logits
    model.sharpen(1)
    assert torch.equal(model(ids).logits, before)
    model.sharpen(2)
    for layer in other.model.layers:
        layer.self_attn.q_proj.weight *= 2
    torch.testing.assert_close(model(ids).logits, other(ids).logits)
    assert not torch.allclose(model(ids).logits, before)
    model.sharpen(1)  # the factor applies to the trained weights, not to the sharpened ones
    assert torch.equal(model(ids).logits, before)
