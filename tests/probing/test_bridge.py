"""An opened model computes what it computed before, and interventions leave no trace."""

import copy
import inspect
import textwrap
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformer_lens.model_bridge import TransformerBridge
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from lab.config.earlier import scratch_parts
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.errors import ModelError, TaskError
from lab.numbers.tasks import TASKS
from lab.probing.addition.positions import NotatedSums, Sums, SumWriter, TextSums, Written
from lab.probing.bridge import Subject, bridge, check, open_model
from lab.scratch.llama import NumberLlama
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from tests.from_scratch import built
from tests.probing.known_adders import llama_adder

NUMBERS = [(3, 4), (123456, 7), (58, 99942)]
NOTATION = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASKS["add_integer"]])
WRITER = NotatedSums(NOTATION, build_tokenizer(NOTATION.vocabulary))
ENCODINGS = [("rope", "plain"), ("nope", "plain"), ("alibi", "plain"), ("alibi_released", "plain"),
             ("fire", "plain"), ("learned", "abacus"), ("learned", "coupled"),
             ("learned local", "coupled")]  # fmt: skip


def from_scratch(encoding: str = "rope", kind: str = "plain") -> NumberLlama:
    name, *local = encoding.split()
    keys = {"encoding": name, "position_kind": kind, "segments": kind == "coupled"}
    keys["locality"] = [0.5, 1, 0, 0.25] if local else 0
    return built(NOTATION.vocabulary, scratch_parts(keys)["parts"])


@pytest.fixture(scope="module")
def toy(toy_model: Path) -> tuple[LlamaForCausalLM, TextSums]:
    model = LlamaForCausalLM.from_pretrained(toy_model).eval()
    return model, TextSums(PreTrainedTokenizerFast.from_pretrained(toy_model), "{a}+{b}=")


@pytest.fixture(scope="module")
def toy_subject(toy: tuple[LlamaForCausalLM, TextSums]) -> Subject:
    model, writer = toy
    return bridge("toy", copy.deepcopy(model), writer)


@pytest.mark.parametrize(("encoding", "kind"), ENCODINGS)
@torch.inference_mode()
def test_every_encoding_has_the_models_logits_whatever_is_read_on_the_way(encoding, kind):
    model = from_scratch(encoding, kind)
    sums = Sums.of(WRITER, NUMBERS)
    expected_BTV = model(sums.tokens_BT).logits
    subject = bridge("scratch", model, WRITER)
    assert (subject.layers, subject.heads, subject.width) == (2, 4, model.config.hidden_size)
    names = [
        f"blocks.{layer}.{name}" for layer in (0, 1) for name in ("attn.hook_pattern", "attn.hook_z", "hook_resid_post")
    ]
    logits_BTV, found = subject.activations(sums, names)
    torch.testing.assert_close(logits_BTV, expected_BTV, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(subject.logits(sums), logits_BTV)
    assert list(found) == names
    rows, tokens = sums.tokens_BT.shape
    assert found["blocks.1.attn.hook_pattern"].shape == (rows, 4, tokens, tokens)
    assert found["blocks.1.attn.hook_z"].shape == (rows, tokens, 4, subject.width // 4)
    assert found["blocks.1.hook_resid_post"].shape == (rows, tokens, subject.width)
    # no query looks ahead
    assert found["blocks.0.attn.hook_pattern"].triu(1).abs().max() == 0


@torch.inference_mode()
def test_grouped_queries_have_a_pattern_for_every_head(toy, toy_subject):
    sums = toy_subject.sums(NUMBERS)
    torch.testing.assert_close(toy_subject.logits(sums), toy[0](sums.tokens_BT).logits, atol=1e-5, rtol=1e-5)
    _, found = toy_subject.activations(sums, ["blocks.0.attn.hook_pattern", "blocks.0.attn.hook_z"])
    assert found["blocks.0.attn.hook_pattern"].shape[1] == found["blocks.0.attn.hook_z"].shape[2] == 4


@pytest.mark.parametrize("encoding", ["llama", "rope", "alibi"])
@torch.inference_mode()
def test_padding_on_the_left_changes_nothing_where_it_is_masked(encoding, toy_subject):
    subject = toy_subject if encoding == "llama" else bridge(encoding, from_scratch(encoding), WRITER)
    sums = subject.sums([(12, 9)])
    alone_BTV = subject.logits(sums)
    padding_B5 = torch.full((1, 5), subject.writer.pad)
    tokens_BT = torch.cat([padding_B5, sums.tokens_BT], dim=1)
    mask_BT = torch.cat([torch.zeros_like(padding_B5), torch.ones_like(sums.tokens_BT)], dim=1)
    padded_BTV = subject.bridge(tokens_BT, attention_mask=mask_BT)
    torch.testing.assert_close(padded_BTV[:, 5:], alone_BTV, atol=1e-4, rtol=1e-4)
    # without a mask it changes them
    assert (subject.bridge(tokens_BT)[:, 5:] - alone_BTV).abs().max() > 1e-2


@torch.inference_mode()
def test_padding_on_the_right_changes_nothing(toy_subject):
    long, short = toy_subject.sums(NUMBERS), toy_subject.sums(NUMBERS[:1])
    tokens = short.tokens_BT.shape[1]
    assert tokens < long.tokens_BT.shape[1]
    torch.testing.assert_close(toy_subject.logits(long)[:1, :tokens], toy_subject.logits(short), atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_hooks_are_gone_afterwards_and_after_an_exception(toy_subject):
    sums = toy_subject.sums(NUMBERS)
    before = toy_subject.logits(sums)
    name = "blocks.0.hook_resid_post"

    def fail(stream_BTD: torch.Tensor, hook: object) -> torch.Tensor:
        raise ZeroDivisionError

    zeroed, found = toy_subject.activations(sums, [name], [(name, lambda stream_BTD, hook: 0 * stream_BTD)])
    assert not zeroed.equal(before)
    assert found[name].abs().max() == 0  # the activation is kept as the hook left it
    with pytest.raises(ZeroDivisionError):
        toy_subject.logits(sums, [(name, fail)])
    with pytest.raises(ZeroDivisionError):
        toy_subject.activations(sums, [name], [(name, fail)])
    assert toy_subject.logits(sums).equal(before)
    assert not [point for point in toy_subject.bridge.hook_dict.values() if point.fwd_hooks]


def test_gradients_are_there_where_torch_records_them(toy_subject):
    sums = toy_subject.sums(NUMBERS)
    assert toy_subject.logits(sums).requires_grad
    with torch.inference_mode():
        assert not toy_subject.logits(sums).requires_grad


def test_unknown_hook_points_are_named(toy_subject):
    with pytest.raises(ModelError, match=r"^toy: there is no hook point blocks\.2\.hook_resid_pre$"):
        toy_subject.activations(toy_subject.sums(NUMBERS), ["blocks.0.hook_resid_pre", "blocks.2.hook_resid_pre"])


def test_a_bridge_that_computes_something_else_is_refused(toy_subject):
    sums = toy_subject.sums(NUMBERS)
    with torch.inference_mode():
        expected_BTV = toy_subject.logits(sums)
        check(toy_subject, sums, expected_BTV)
        expected_BTV[1, 2, 3] += 0.5
        with pytest.raises(ModelError, match=r"^toy: the bridge's logits differ from the model's by up to 0\.5$"):
            check(toy_subject, sums, expected_BTV)


def test_a_bridge_whose_attention_does_not_sum_to_one_is_refused():
    subject = llama_adder()
    subject.bridge.add_hook("blocks.1.attn.hook_pattern", lambda pattern_BHTT, hook: 0.5 * pattern_BHTT)
    sums = subject.sums(NUMBERS)
    with torch.inference_mode():
        expected_BTV = subject.logits(sums)
    with pytest.raises(ModelError, match=r"^llama adder: blocks\.1\.attn\.hook_pattern does not sum to one: 0\.5$"):
        check(subject, sums, expected_BTV)


def test_a_model_that_transformer_lens_does_not_know_is_one_line(toy):
    model, writer = copy.deepcopy(toy[0]), toy[1]
    model.config.architectures = ["AbacusForCausalLM"]
    with pytest.raises(ModelError, match=r"^toy: no bridge for AbacusForCausalLM: .*") as caught:
        bridge("toy", model, writer)
    assert "\n" not in str(caught.value)


@torch.inference_mode()
def test_adapters_that_are_not_merged_count(toy):
    model, writer = copy.deepcopy(toy[0]), toy[1]
    sums = Sums.of(writer, NUMBERS)
    base_BTV = model(sums.tokens_BT).logits
    targets = ["q_proj", "v_proj", "o_proj", "down_proj"]
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules=targets, init_lora_weights=False)).eval()
    expected_BTV = adapted(sums.tokens_BT).logits
    assert (expected_BTV - base_BTV).abs().max() > 0.1
    subject = bridge("adapted", adapted, writer)  # type: ignore[arg-type]
    torch.testing.assert_close(subject.logits(sums), expected_BTV, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_a_folder_opens_by_its_name(toy_model, toy):
    subject = open_model(str(toy_model), "{a}+{b}=")
    sums = subject.sums(NUMBERS)
    torch.testing.assert_close(subject.logits(sums), toy[0](sums.tokens_BT).logits, atol=1e-5, rtol=1e-5)
    assert subject.name == str(toy_model)


def test_models_that_are_not_there_and_bad_templates_are_one_line(toy_model, tmp_path):
    with pytest.raises(ModelError) as caught:
        open_model(str(tmp_path / "nothing"))
    assert "\n" not in str(caught.value)
    with pytest.raises(TaskError, match=r"^template '\{a\}': should have"):
        open_model(str(toy_model), "{a}").sums([(1, 2)])


@torch.inference_mode()
def test_any_bridge_with_a_tokenizer_is_a_subject_in_one_line(toy_model, toy):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(toy_model)
    opened = TransformerBridge.boot_transformers(
        str(toy_model), hf_model=LlamaForCausalLM.from_pretrained(toy_model).eval(), tokenizer=tokenizer
    )
    subject = Subject.from_bridge(opened, "{a}+{b}=")
    sums = subject.sums(NUMBERS)
    torch.testing.assert_close(subject.logits(sums), toy[0](sums.tokens_BT).logits, atol=1e-5, rtol=1e-5)
    opened.tokenizer = None
    with pytest.raises(ModelError, match=r"^this bridge has no tokenizer; give a writer of your own"):
        Subject.from_bridge(opened)


def test_a_tokenizer_without_padding_pads_with_its_end(toy_model):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(toy_model)
    tokenizer.pad_token = None
    assert TextSums(tokenizer, "{a}+{b}=").pad == tokenizer.eos_token_id


def test_the_writer_of_the_documentation_writes_sums():
    lines = inspect.cleandoc(SumWriter.__doc__ or "").splitlines()
    code = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))
    names: dict = {"Written": Written}
    exec(code, names)
    written = names["Plain"]().write(12, 9)
    assert names["Plain"]().words(written.ids) == list("12+9=21$")
    assert (written.a_at, written.b_at, written.answer_at) == ([1, 0], [3], [6, 5])
    assert (written.operator_at, written.equals_at) == (2, 4)
