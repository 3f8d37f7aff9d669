import json

import pytest
import torch
from transformers import LlamaForCausalLM

from lab.config.finetuning import DigitTokensConfig, LoraConfig, Swap, TextTokenizerConfig
from lab.config.notation import FormatConfig
from lab.config.schema import ModelConfig
from lab.engines.engine import Request
from lab.engines.local import LocalEngine
from lab.engines.plain import PlainEngine
from lab.errors import ModelError
from lab.graft.llama import visible_keys
from lab.models import adapters, loading, swaps
from lab.parts.coupled import FAR_KIND, Coupled
from lab.parts.part import Step
from lab.text.examples import EncodedExample
from lab.trees.cache import RaggedCache
from lab.trees.layout import shareable, tree_inputs, tree_path_inputs
from lab.trees.losses import tree_loss
from lab.trees.paths import Paths, attend_along_paths, attends_along_paths
from lab.trees.prefill import PromptReader
from lab.trees.prefix_tree import PrefixTree
from lab.tune.collation import PrefixTreeCollator

REVERSED = FormatConfig(reverse="integer")
AS_WRITTEN = FormatConfig(reverse="none", pad="answer", carry_place=True)
TWO_DIGITS = TextTokenizerConfig(digits=DigitTokensConfig(kind="k_digit", k=2))


def swap_with(format: FormatConfig, **parts: dict) -> Swap:
    return Swap.model_validate({"parts": parts, "format": format})


TOTAL, ANSWER = FormatConfig(reverse="total"), FormatConfig(reverse="answer")
WALK = {"heads": 3, "layers": (1, 1)}
SWAPS = {
    "nope": swap_with(FormatConfig(), nope={}),
    "alibi": swap_with(FormatConfig(), alibi={}),
    "places": swap_with(REVERSED, place_embeddings={"places": 40}),
    "places in alibi": swap_with(REVERSED, alibi={}, place_embeddings={"places": 40}),
    "same place": swap_with(TOTAL, same_place={}),
    "same place and all": swap_with(REVERSED, alibi={}, place_embeddings={"places": 40}, same_place={}),
    "coupled": swap_with(TOTAL, coupled={}),
    "coupled, only answers reversed": swap_with(ANSWER, coupled={}),
    "coupled in one layer": swap_with(TOTAL, coupled={"window": 0, "layers": (1, 1)}),
    "coupled, far digits seen": swap_with(TOTAL, coupled={"far": "seen", "far_at_most": 3}),
    "coupled, far digits fade": swap_with(ANSWER, coupled={"far": "fading"}),
    "coupled, nothing reversed": swap_with(AS_WRITTEN, coupled={}, walk=WALK),
    "coupled, far digits fade, nothing reversed": swap_with(AS_WRITTEN, coupled={"far": "fading"}, walk=WALK),
    "coupled, far digits fade, nearest word": swap_with(TOTAL, coupled={"far": "fading", "words": "nearest"}),
    "coupled, evenly spaced": swap_with(TOTAL, coupled={}, even_spacing={}),
    "coupled, evenly spaced, nothing reversed": swap_with(AS_WRITTEN, coupled={}, even_spacing={}, walk=WALK),
    "two digits": Swap(tokenizer=TWO_DIGITS),
    "hints": Swap(format=FormatConfig(index_hints="both")),
}
CAUSAL = [name for name, swap in SWAPS.items() if "walk" not in swap.parts]
"""In the others, places depend on how long the numbers of a question become."""
TEXTS = ["12 + 345 =", "7 + 8 =", "x 90817 and 33"]


def load(toy_model, swap: Swap):
    return swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), swap)


def with_trained_places(model):
    torch.manual_seed(1)
    for name, weight in model.named_parameters():
        if name.startswith("parts."):
            scale = 2 if name.endswith("bias") else 0.5
            torch.nn.init.normal_(weight, std=scale)
    return model


@pytest.fixture(scope="module", params=SWAPS)
def swapped(request, toy_model):
    model, tokenizer = load(toy_model, SWAPS[request.param])
    return with_trained_places(model), tokenizer


@pytest.mark.parametrize("places", [1, 40])
def test_places_change_no_bit_before_they_are_trained(toy_model, places):
    swap = swap_with(REVERSED, place_embeddings={"places": places})
    model, tokenizer = load(toy_model, swap)
    plain = LlamaForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa").eval()
    ids = tokenizer.encode("1 + 2 = 3" if places == 1 else "123 + 45 = 168", return_tensors="pt")
    with torch.inference_mode():
        assert torch.equal(model(ids).logits, plain(ids).logits)


def test_a_bias_of_places_changes_no_bit_before_it_is_trained(toy_model):
    model, tokenizer = load(toy_model, SWAPS["same place"])
    plain = LlamaForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa").eval()
    tree = PrefixTree([tokenizer.encode(text) for text in ("12 + 345 = 1", "12 + 347 = 82")])
    with torch.inference_mode():
        assert torch.equal(model(**tree.inputs(), **tree_inputs(model, tree)).logits, plain(**tree.inputs()).logits)


def test_a_coupled_model_reads_text_without_numbers_to_the_bit_as_its_base_does(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled"])
    plain = LlamaForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa").eval()
    with_trained_places(model)
    tree = PrefixTree([tokenizer.encode(text) for text in ("a cat. sat = e", "a cat, e.g. this")])
    alone = tokenizer.encode("Some words, and no number.", return_tensors="pt")
    with torch.inference_mode():
        assert torch.equal(model(alone).logits, plain(alone).logits)
        assert torch.equal(model(**tree.inputs() | tree_inputs(model, tree)).logits, plain(**tree.inputs()).logits)


def test_a_row_along_its_paths_has_the_logits_of_the_tree(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled"])
    with_trained_places(model)
    texts = ("12 + 345 = 1", "12 + 347 = 82", "12 + 9 = 4", "and 5")
    tree = PrefixTree([tokenizer.encode(text) for text in texts])
    given = tree_path_inputs(model, tree)
    paths = Paths(*(given.pop(name) for name in Paths._fields))
    with torch.inference_mode():
        expected = model(**tree.inputs() | tree_inputs(model, tree), use_cache=False).logits
        found = model(input_ids=tree.inputs()["input_ids"], **given, paths=paths, use_cache=False).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_a_swapped_model_has_the_loss_of_the_tree_along_its_paths(swapped):
    model, tokenizer = swapped
    texts = (("12 + 345 = ", "753"), ("12 + 347 = ", "953"), ("Say 5 or 77: ", "5"))
    examples = [EncodedExample(tokenizer.encode(prompt), tokenizer.encode(answer)) for prompt, answer in texts]
    before = model.config._attn_implementation
    expected = tree_loss(model, PrefixTreeCollator(model=model)(examples))
    attend_along_paths(model)
    assert attends_along_paths(model)
    found = tree_loss(model, PrefixTreeCollator(model=model)(examples))
    model.set_attn_implementation(before)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_an_answer_digit_does_not_depend_on_digits_of_distant_places(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled"])
    with_trained_places(model)
    # The next digit is of place 8: it sees 7 to 9 of the second number, which see 7 to 11 of the first. Text sees the
    # ones digits and their neighbours, and through those of the second number places 0 to 3 of the first.
    alike = "say 0123456789123 + 0123456789123 = 01234567"
    other = "say 0123006789120 + 0123000789000 = 00000007"
    logits = [model(tokenizer.encode(text, return_tensors="pt")).logits[0, -1] for text in (alike, other)]
    torch.testing.assert_close(*logits)
    near = alike.replace("89123 =", "79123 =")
    assert (model(tokenizer.encode(near, return_tensors="pt")).logits[0, -1] - logits[0]).abs().max() > 1e-3


def test_the_length_of_numbers_does_not_matter_to_the_text_after_them(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled"])
    with_trained_places(model)
    short, long = (tokenizer.encode(f"take 1234{more} and stop", return_tensors="pt") for more in ("", "5" * 300))
    torch.testing.assert_close(model(short).logits[0, -5:], model(long).logits[0, -5:])


def test_layers_without_a_bound_see_all_digits(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled in one layer"])
    texts = ("say 123456789 + 987654321 = 0123", "say 993456222 + 777654333 = 0123")
    with torch.inference_mode():
        first, second = (model(tokenizer.encode(text, return_tensors="pt")).logits[0, -1] for text in texts)
    assert (first - second).abs().max() > 1e-3


def test_far_digits_that_are_seen_can_be_learned_to_be_ignored(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled, far digits seen"])
    texts = ("say 0123456789123 + 0123456789123 = 01234567", "say 0123006789120 + 0123000789000 = 00000007")
    tokens = [tokenizer.encode(text, return_tensors="pt") for text in texts]  # the next digit is of place 8
    first, second = (model(row).logits[0, -1] for row in tokens)
    assert (first - second).abs().max() > 1e-3
    torch.nn.init.constant_(model.parts["coupled"].bias[..., -1], -100)
    torch.testing.assert_close(*(model(row).logits[0, -1] for row in tokens))


def test_far_digits_together_weigh_no_more_than_the_allowed_number_of_them(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled, far digits seen"])
    for digits in (2, 5, 40):
        tokens = tokenizer.encode(f"take {'7' * digits} and")
        inputs = model.part_inputs([tokens], [(0, len(tokens) - 1, len(tokens))]).parts["coupled"]
        far_11K = inputs["kinds_BQK"] == FAR_KIND
        assert far_11K.sum() == digits  # after one number there is no answer to write, so all its digits are far
        step = Step(torch.zeros(1, 1, 8), model.model.rotary_emb, training=False)
        bounded = model.parts["coupled"].act(inputs, step).shared(torch.zeros(1, 1, 1, len(tokens)))[0].exp()
        assert bounded[far_11K].sum().item() == pytest.approx(min(3, digits), rel=1e-5)
        assert (bounded[~far_11K] == 1).all()
    row = torch.tensor([tokens])
    with_bound = model(row).logits
    loading.change_parts(model, {"coupled": {"far_at_most": 0}})
    assert (model(row).logits - with_bound)[0, -1].abs().max() > 1e-4
    loading.change_parts(model, {"coupled": {"far_at_most": 3}})
    assert torch.equal(model(row).logits, with_bound)


def test_a_far_digit_that_fades_weighs_as_if_it_had_the_bias_of_its_distance(toy_model):
    model, tokenizer = load(toy_model, SWAPS["coupled, far digits fade"])
    bias, slopes = model.parts["coupled"].bias, model.parts["coupled"].slopes
    assert torch.all(slopes == Coupled.first_slope)
    ids = torch.tensor([tokenizer.encode("4321 + 98 = 32")])
    with torch.no_grad():
        before = model(ids).logits
        slopes.fill_(-2.0)  # its size counts
        assert not torch.allclose(model(ids).logits[0, -1], before[0, -1])
        slopes.fill_(1e4)
        bias[..., -1].fill_(-1e4)  # now what is 0 places away is not seen, either
        faded = model(ids).logits
        slopes.fill_(0.0)
        assert torch.allclose(model(ids).logits, faded, atol=1e-5)
    hidden, _ = load(toy_model, swap_with(ANSWER, coupled={}))
    torch.testing.assert_close(faded, hidden(ids).logits)


@pytest.mark.parametrize(("swap", "message"), [("coupled", "far=seen"), ("places", "far=seen"), (None, "have parts")])
def test_far_digits_that_are_not_told_from_others_cannot_be_bounded(toy_model, swap, message):
    model = load(toy_model, SWAPS[swap] if swap else Swap())[0]
    with pytest.raises(ModelError, match=message):
        loading.change_parts(model, {"coupled": {"far_at_most": 3}})


def test_a_bound_of_layers_that_there_are_not_is_refused(toy_model):
    with pytest.raises(ModelError, match=r"coupled\.layers=\[0, 2\]: there is no layer 2; the model has 2"):
        load(toy_model, swap_with(TOTAL, coupled={"layers": (0, 2)}))


def test_a_digits_place_is_how_many_digits_its_run_has_so_far(toy_model):
    model, tokenizer = load(toy_model, SWAPS["places"])
    places = model.parts["place_embeddings"].places(tokenizer.encode("x 123+45.67"))
    assert places.tolist() == [0, 0, 1, 2, 3, 0, 1, 2, 0, 1, 2]


def test_a_token_of_two_digits_has_the_place_of_its_last(toy_model):
    swap = Swap.model_validate({"tokenizer": TWO_DIGITS, "parts": {"place_embeddings": {"places": 8}}})
    model, tokenizer = load(toy_model, swap)
    assert model.parts["place_embeddings"].places(tokenizer.encode("123+45")).tolist() == [1, 3, 0, 2]


def test_hints_do_not_end_a_run(toy_model):
    hinted = swap_with(FormatConfig(index_hints="both", reverse="integer"), place_embeddings={"places": 8})
    model, tokenizer = load(toy_model, hinted)
    assert model.parts["place_embeddings"].places(tokenizer.encode("<0.0>7<0.1>4+")).tolist() == [0, 1, 0, 2, 0]


def test_alibi_takes_away_slope_times_distance(toy_model):
    model, _ = load(toy_model, SWAPS["alibi"])
    states = torch.zeros(1, 3, 32)
    positions = model.positions_of(**model.part_inputs([[5, 6, 7]]).parts["positions"])
    act = model.parts["alibi"].act({}, Step(states, model.model.rotary_emb, False, positions=positions))
    hidden = torch.finfo(torch.float32).min
    bias = act.shared(torch.where(visible_keys(torch.tensor([[5, 6, 7]]), None, 0), 0.0, hidden))
    slopes = [2**-2, 2**-4, 2**-6, 2**-8]
    for head, slope in enumerate(slopes):
        expected = [[0, hidden, hidden], [-slope, 0, hidden], [-2 * slope, -slope, 0]]
        assert torch.equal(bias[0, head], torch.tensor(expected))


def test_without_positions_order_does_not_matter_to_the_last_token_of_one_layer(toy_model):
    model, tokenizer = load(toy_model, SWAPS["nope"])
    model.model.layers = model.model.layers[:1]
    with torch.inference_mode():
        first, second = (model(tokenizer.encode(text, return_tensors="pt")).logits[0, -1] for text in ("ab=", "ba="))
    torch.testing.assert_close(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("swapped", CAUSAL, indirect=True)
def test_generation_with_a_cache_is_that_without(swapped):
    model, tokenizer = swapped
    for text in TEXTS:
        ids = tokenizer.encode(text, return_tensors="pt")
        expected = ids
        with torch.inference_mode():
            for _ in range(8):
                chosen = model(expected, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)
                expected = torch.cat([expected, chosen], 1)
        ones = torch.ones_like(ids)  # the text may begin with the token that pads others
        settings: dict = {"max_new_tokens": 8, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
        found = model.generate(ids, attention_mask=ones, **settings)
        assert found.tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("swapped", CAUSAL, indirect=True)
def test_the_labs_engine_writes_what_generate_writes(swapped):
    model, tokenizer = swapped
    start = "the same long beginning, again and again, so that it is read once for all of a group: "
    requests = [Request(start + text, 6 + i, "group") for i, text in enumerate(TEXTS)]
    local, plain = LocalEngine(model, tokenizer, 2), PlainEngine(model, tokenizer, 2)
    ours, theirs = ({i: c.text for found in e.generate(requests) for i, c in found.items()} for e in (local, plain))
    assert ours == theirs


def test_a_prefix_tree_has_the_logits_of_its_sequences(swapped):
    model, tokenizer = swapped
    # the last two share digits whose places differ: 5.21 and 5.521, from the lowest digit up
    texts = ("12 + 345 = 1", "12 + 347 = 82", "12 + 9 = 4", "12.5 + 3 = 1", "125.5 + 3 = 8")
    sequences = [tokenizer.encode(text) for text in texts]
    tree = PrefixTree(sequences, shareable=shareable(model))
    with torch.inference_mode():
        logits = model(**tree.inputs() | tree_inputs(model, tree), use_cache=False).logits[0]
        for sequence, path in zip(sequences, tree.paths, strict=True):
            alone = model(torch.tensor([sequence])).logits[0]
            torch.testing.assert_close(logits[path], alone, atol=1e-4, rtol=1e-4)


def test_padding_on_the_left_changes_nothing(swapped):
    assert_that_padding_changes_nothing(*swapped)


@pytest.mark.parametrize("words", ["last", "nearest"])
def test_padding_is_not_the_first_token_which_all_digits_see(toy_model, words):
    assert_that_padding_changes_nothing(*load(toy_model, swap_with(REVERSED, coupled={"words": words})))


def test_generate_pads_on_the_left(toy_model):
    model, tokenizer = load(toy_model, swap_with(REVERSED, coupled={"words": "nearest"}))
    with_trained_places(model)
    rows = [tokenizer.encode(text) for text in ("x x 1 + 3 = ", "x 123 + 45678 = ")]
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    settings = {"max_new_tokens": 3, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    settings |= {"return_dict_in_generate": True, "output_logits": True}
    together = model.generate(ids, attention_mask=mask, **settings)
    for place, row in enumerate(rows):
        alone = model.generate(torch.tensor([row]), attention_mask=torch.ones(1, len(row)), **settings)
        for found, expected in zip(together.logits, alone.logits, strict=True):
            torch.testing.assert_close(found[place], expected[0], atol=1e-4, rtol=1e-4)


def assert_that_padding_changes_nothing(model, tokenizer):
    ids = tokenizer.encode("x x 12 + 345 = 75", return_tensors="pt")
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), ids], 1)
    mask = (torch.arange(padded.shape[1]) >= 3).long()[None]
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.inference_mode():
        found = model(padded, attention_mask=mask, position_ids=positions).logits[:, 3:]
        torch.testing.assert_close(found, model(ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["coupled, nothing reversed", "coupled, evenly spaced, nothing reversed"])
def test_an_answer_that_begins_with_its_highest_digit_is_written_alike_with_a_cache_and_without(toy_model, name):
    model, tokenizer = load(toy_model, SWAPS[name])
    with_trained_places(model)
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    digits = {token for token, word in enumerate(words) if word.isascii() and word.isdigit()}
    forbidden = [token for token in range(model.config.vocab_size) if token not in digits]
    model.know_tokens(words, [], forbidden, "none")
    requests = [Request(text, digits) for text, digits in (("12 + 345 =", 4), ("12 + 3456789 =", 8), ("12 + 3 =", 3))]
    found = {i: c.text for part in LocalEngine(model, tokenizer, 3).generate(requests) for i, c in part.items()}
    for index, (prompt, length, *_) in enumerate(requests):
        ids = tokenizer.encode(prompt)
        row = torch.tensor([ids])
        for _ in range(length):
            row = torch.cat([row, model(row, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], 1)
        assert found[index] == tokenizer.decode(row[0, len(ids) :])


def test_a_long_prompt_alone_is_read_as_in_one_pass(toy_model):
    model, tokenizer = load(toy_model, swap_with(AS_WRITTEN, coupled={"words": "nearest"}, walk=WALK))
    with_trained_places(model)
    prompt = tokenizer.encode(f"like 123 . Add two numbers: {'57' * 15} + {'6834' * 9}=")
    with torch.inference_mode():
        found = PromptReader(model, [""], [prompt]).read([0], RaggedCache(1, 200, 200))[0]
        torch.testing.assert_close(found, model(torch.tensor([prompt])).logits[0, -1], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["coupled, nothing reversed", "coupled, evenly spaced"])
def test_another_attention_is_refused_if_a_part_needs_that_of_the_lab(toy_model, name):
    model, tokenizer = load(toy_model, SWAPS[name])
    model.set_attn_implementation("eager")
    with pytest.raises(ModelError, match="eager knows no parts"):
        model(tokenizer.encode("1 + 2 = ", return_tensors="pt"))


def test_an_answer_that_begins_with_its_highest_digit_sees_far_digits_only_by_walking_down(toy_model):
    """The next digit is of place 8, and sees the places 7 to 9. All digits of lower places are seen by walking heads
    alone: without these, changes below do not reach the answer."""
    model, tokenizer = load(toy_model, SWAPS["coupled, nothing reversed"])
    with_trained_places(model)
    texts = ("say 3219876543210 + 3219876543210 = 06439", "say 3219876543210 + 3219876500001 = 06439")
    tokens = [tokenizer.encode(text, return_tensors="pt") for text in texts]
    assert (model(tokens[0]).logits[0, -1] - model(tokens[1]).logits[0, -1]).abs().max() > 1e-4
    torch.nn.init.constant_(model.parts["walk"].bias, -100)
    torch.testing.assert_close(*(model(row).logits[0, -1] for row in tokens))


def test_new_tokens_begin_as_the_mean_of_their_digits(toy_model):
    model, tokenizer = load(toy_model, SWAPS["two digits"])
    four, seven, both = tokenizer.convert_tokens_to_ids(["4", "7", "47"])
    for table in (model.get_input_embeddings().weight, model.get_output_embeddings().weight):
        torch.testing.assert_close(table[both], (table[four] + table[seven]) / 2)


def test_a_forbidden_token_is_never_written_whatever_its_logit(toy_model):
    model, tokenizer = load(toy_model, SWAPS["nope"])
    ids = tokenizer.encode("12 + 345 =", return_tensors="pt")
    with torch.inference_mode():
        likeliest = int(model(ids).logits[0, -1].argmax())
        words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        model.know_tokens(words, [], [likeliest], "none")
        chances = model(ids).logits[0, -1].softmax(-1)
        written = model.generate(ids, max_new_tokens=20, do_sample=True, temperature=5.0, eos_token_id=None)
    assert chances[likeliest] == 0
    assert likeliest not in written[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("name", SWAPS)
def test_adapters_bring_their_swap_with_them(toy_model, tmp_path, name):
    swap = SWAPS[name]
    model, tokenizer = load(toy_model, swap)
    tuned = adapters.attach(model, LoraConfig(rank=2), seed=0)
    for weight in tuned.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.1)
    tuned.eval().save_pretrained(tmp_path, save_embedding_layers=False)
    (tmp_path / swaps.FILE).write_text(swap.model_dump_json())
    ids = tokenizer.encode("12 + 345 = 7", return_tensors="pt")
    with torch.inference_mode():
        expected = tuned(ids).logits
        again, own = loading.load(ModelConfig(name=str(tmp_path), dtype="float32", device="cpu"))
        assert own.encode("12 + 345 = 7") == ids[0].tolist()
        torch.testing.assert_close(again(ids).logits, expected, atol=1e-4, rtol=1e-4)
    assert swaps.swap_of(again) == swap


def test_adapters_without_their_swap_are_refused(toy_model, tmp_path):
    model, _ = load(toy_model, SWAPS["nope"])
    adapters.attach(model, LoraConfig(rank=2), seed=0).save_pretrained(tmp_path)
    (tmp_path / swaps.FILE).write_text(SWAPS["nope"].model_dump_json())
    plain, _ = load(toy_model, Swap())
    with pytest.raises(ModelError, match=r"trained with .*nope"):
        adapters.load(plain, tmp_path)


def test_a_damaged_swap_is_one_line(tmp_path):
    (tmp_path / swaps.FILE).write_text(json.dumps({"parts": {"sideways": {}}}))
    with pytest.raises(ModelError, match="not a swap"):
        swaps.recorded(tmp_path)


def test_a_model_that_is_no_llama_is_refused(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=20)).save_pretrained(tmp_path)
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE({"a": 0}, [])), eos_token="a").save_pretrained(
        tmp_path
    )
    with pytest.raises(ModelError, match="type gpt2"):
        load(tmp_path, SWAPS["nope"])


def test_a_place_without_an_embedding_is_refused(toy_model):
    model, tokenizer = load(toy_model, swap_with(REVERSED, place_embeddings={"places": 2}))
    with pytest.raises(ModelError, match=r"place_embeddings\.places of at least 3"):
        model(tokenizer.encode("123", return_tensors="pt"))


def test_a_longer_number_that_the_model_writes_does_not_end_the_test(toy_model):
    model, tokenizer = load(toy_model, swap_with(REVERSED, place_embeddings={"places": 2}))
    seven = torch.tensor(tokenizer.encode("7")[0])
    model.lm_head.register_forward_hook(
        lambda _, given, logits: torch.nn.functional.one_hot(seven, logits.shape[-1]).to(logits).expand_as(logits)
    )
    (found,) = LocalEngine(model, tokenizer, 1).generate([Request("1+2=", max_tokens=5)])
    assert found[0].text == "77777"


def test_tokens_of_several_digits_have_no_place_of_their_own(toy_model):
    model, _ = load(toy_model, SWAPS["same place"])
    with pytest.raises(ModelError, match=r"one digit a token.*'12'.*one_digit"):
        model.know_tokens(["1", "2", "12"], [], [], "total")
    model.know_tokens(["1", "2", "12"], [], [2], "total")  # a token that is never written does not matter


@pytest.mark.parametrize("name", SWAPS)
def test_models_with_parts_open_for_probing_and_their_patterns_count(toy_model, name):
    from lab.probing.addition.positions import TextSums
    from lab.probing.bridge import bridge
    from lab.probing.contrast import Tokens
    from lab.probing.interventions import pattern

    model, tokenizer = load(toy_model, SWAPS[name])
    format = SWAPS[name].format
    writer = TextSums(tokenizer, format=None if format.index_hints != "none" else format)
    subject = bridge(name, with_trained_places(model), writer, tokenizer)  # checks that the logits are the model's
    asked = Tokens(subject.sums([(12, 34), (5, 67)]).tokens_BT)
    with torch.inference_mode():
        changed = subject.logits(asked, [pattern(0, torch.zeros_like)])
        assert not torch.allclose(changed.nan_to_num(0, 0, 0), subject.logits(asked).nan_to_num(0, 0, 0), atol=1e-4)


def test_spacing_can_be_set_after_loading_and_taken_back(toy_model):
    spaced, tokenizer = load(toy_model, SWAPS["coupled, evenly spaced"])
    model, _ = load(toy_model, SWAPS["coupled"])
    ids = tokenizer.encode("12 and 345 = 7", return_tensors="pt")
    with torch.inference_mode():
        before = with_trained_places(model)(ids).logits
        loading.change_parts(model, {"even_spacing": {"distance": 3}})
        assert torch.equal(model(ids).logits, with_trained_places(spaced)(ids).logits)
        assert not torch.allclose(model(ids).logits, before, atol=1e-3)
        loading.change_parts(model, {"even_spacing": None})
        assert torch.equal(model(ids).logits, before)


def test_evenly_spaced_numbers_change_no_bit_of_a_text_without_numbers(toy_model):
    spaced, tokenizer = load(toy_model, SWAPS["coupled, evenly spaced"])
    plain = LlamaForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa").eval()
    ids = tokenizer.encode("Some words, and no number.", return_tensors="pt")
    with torch.inference_mode():
        assert torch.equal(spaced(ids).logits, plain(ids).logits)


def test_spacing_needs_coupled_positions_and_a_rotation_that_does_not_change(toy_model):
    same_place, _ = load(toy_model, SWAPS["same place"])
    with pytest.raises(ModelError, match="even_spacing needs a model that was tuned"):
        loading.change_parts(same_place, {"even_spacing": {"distance": 3}})
    coupled, _ = load(toy_model, SWAPS["coupled"])
    with pytest.raises(ModelError, match=r"even_spacing: distance: .*greater than or equal to 1"):
        loading.change_parts(coupled, {"even_spacing": {"distance": -1}})
    coupled.model.rotary_emb.rope_type = "dynamic"
    with pytest.raises(ModelError, match="even_spacing does not go with RoPE of the kind dynamic"):
        loading.change_parts(coupled, {"even_spacing": {"distance": 3}})
