"""Every place that is named really holds its digit, whatever the format and the tokenizer."""

import string
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.config.schema import ModelConfig
from lab.errors import ModelError, TaskError
from lab.models import pretrained
from lab.numbers.sampling import Problem
from lab.numbers.tasks import TASKS
from lab.probing.addition.positions import NotatedSums, Sums, SumWriter, TextSums
from lab.probing.benchmark.known import DIGITS, FieldSums
from lab.probing.contrast import NOWHERE
from lab.probing.interventions import heads
from lab.text import prompts
from lab.text.examples import IGNORED, encode_prompt
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from tests.probing.known_adders import llama_adder

FORMATS = {
    "plain": FormatConfig(),
    "reversed": FormatConfig(reverse="integer"),
    "padded": FormatConfig(pad="all"),
    "operands padded, reversed": FormatConfig(pad="operands", reverse="each"),
    "hints in the question": FormatConfig(index_hints="question"),
    "hints, reversed": FormatConfig(index_hints="both", reverse="total"),
    "hints, padded, reversed": FormatConfig(index_hints="both", reverse="integer", pad="all"),
}
numbers = st.lists(
    st.tuples(st.integers(0, 10**7), st.one_of(st.integers(0, 99), st.integers(0, 10**7))), min_size=1, max_size=5
)


def notated(format: FormatConfig, digits: int = 1, tasks: tuple[str, ...] = ("add_integer",)) -> NotatedSums:
    notation = Notation(TokenizerConfig(digits=digits), format, [TASKS[task] for task in tasks])
    return NotatedSums(notation, build_tokenizer(notation.vocabulary))


def words_of(format: FormatConfig, digits: int = 1) -> list[str]:
    return Notation(TokenizerConfig(digits=digits), format, [TASKS["add_integer"]]).vocabulary


def text_tokenizer(digits: int) -> PreTrainedTokenizerFast:
    """One token a character, but digits in groups of up to `digits`, counted from the left as in Llama 3."""
    groups = [f"{n:0{size}d}" for size in range(1, digits + 1) for n in range(10**size)]
    vocabulary = ["<eos>", "<unk>", *groups, *(x for x in string.printable if not x.isdigit())]
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(rf"\d{{1,{digits}}}|\D"), "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<eos>", unk_token="<unk>")


def check_digits(sums: Sums, digit_words: list[str]) -> None:
    """Checks that every place holds its digit, if a token has one digit. `digit_words`: the vocabulary."""
    columns = sums.columns
    operands = (sums.a_at_BK, columns.a, 0), (sums.b_at_BK, columns.b, 1)
    for row, (a, b) in enumerate(sums.numbers):
        for at_BK, digits_BK, side in operands:
            at, digits = at_BK[row].tolist(), digits_BK[row]
            assert sum(place != NOWHERE for place in at) >= len(str((a, b)[side]))
            for place, digit in zip(at, digits, strict=True):
                assert place == NOWHERE or digit_words[int(sums.tokens_BT[row, place])].strip() == str(digit)
        answer = sums.answer_at_BK[row].tolist()
        assert [place != NOWHERE for place in answer] == sums.has_digit_BK[row].tolist()
        assert sum(place != NOWHERE for place in answer) >= len(str(a + b))
        for place, query, digit in zip(answer, sums.query_at_BK[row].tolist(), columns.sum[row], strict=True):
            assert query == (NOWHERE if place == NOWHERE else place - 1)
            assert place == NOWHERE or digit_words[int(sums.tokens_BT[row, place])].strip() == str(digit)


def check_order(sums: Sums) -> None:
    """Checks that a, the operator, b, "=", the answer and the end stand in this order."""
    for row in range(len(sums)):
        a, b, answer = ([place for place in at[row].tolist() if place != NOWHERE]
                        for at in (sums.a_at_BK, sums.b_at_BK, sums.answer_at_BK))  # fmt: skip
        assert max(a) < sums.operator_at_B[row] < min(b) <= max(b) <= sums.equals_at_B[row]
        assert sums.equals_at_B[row] < min(answer) <= max(answer) <= sums.end_at_B[row]


def test_the_example_of_the_docstring_is_true():
    sums = notated(FormatConfig()).write(12, 9)
    vocabulary = words_of(FormatConfig())
    assert [vocabulary[i] for i in sums.ids] == ["<begin>", "1", "2", "<add_integer>", "9", "=", "2", "1", "<end>"]
    assert sums[1:] == ([2, 1], [4], [7, 6], 3, 5, True)


def test_what_follows_an_answer_counts_only_if_a_model_has_to_end_there():
    """A base model that is asked in a text of the user's own goes on after its answer, for example with a new line."""
    for template, exact in (("", False), ("{a}+{b}=", True)):
        sums = Sums.of(TextSums(text_tokenizer(1), template), [(12, 9)])
        logits_BTV = torch.nn.functional.one_hot(torch.roll(sums.tokens_BT, -1, dims=1), 300).float()
        assert sums.read(logits_BTV).exact_B.tolist() == [True]
        end = int(sums.end_at_B[0])
        logits_BTV[0, end] = logits_BTV[0, end].roll(1)  # any token but the end
        assert sums.read(logits_BTV).exact_B.tolist() == [exact]


def test_a_batch_has_columns_of_the_longest_sum_and_padding_on_the_right():
    writer = notated(FormatConfig())
    sums = Sums.of(writer, [(12, 9), (95, 5)])
    assert sums.columns.sum.tolist() == [[1, 2, 0], [0, 0, 1]]
    assert sums.a_at_BK.tolist() == [[2, 1, -1], [2, 1, -1]]
    assert sums.b_at_BK.tolist() == [[4, -1, -1], [4, -1, -1]]
    assert sums.answer_at_BK.tolist() == [[7, 6, -1], [8, 7, 6]]
    assert sums.query_at_BK.tolist() == [[6, 5, -1], [7, 6, 5]]
    assert sums.end_at_B.tolist() == [7, 8]
    assert sums.tokens_BT.shape == (2, 10)
    assert sums.tokens_BT[0, -1] == writer.pad
    next_BT = sums.next_BT
    assert next_BT[0, :5].tolist() == [IGNORED] * 5
    assert next_BT[0, 5:8].tolist() == sums.tokens_BT[0, 6:9].tolist()
    assert next_BT[0, 8:].tolist() == [IGNORED] * 2


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS.keys())
@settings(max_examples=8)
@given(numbers=numbers)
def test_notations_of_one_digit_a_token(format, numbers):
    writer = notated(format)
    sums = Sums.of(writer, numbers)
    check_digits(sums, words_of(format))
    check_order(sums)
    assert writer.words(range(len(words_of(format)))) == words_of(format)
    assert [words_of(format)[i] for i in writer.digit_ids()] == list(string.digits)
    # what is predicted at the last places is the end
    end_B = sums.next_BT.gather(1, sums.end_at_B[:, None])[:, 0]
    assert {words_of(format)[i] for i in end_B.tolist()} == {"<end>"}


@pytest.mark.parametrize("reverse", ["none", "integer"])
@settings(max_examples=8)
@given(numbers=numbers)
def test_groups_of_two_digits_share_a_token(reverse, numbers):
    writer = notated(FormatConfig(reverse=reverse), digits=2)
    words = words_of(FormatConfig(), digits=2)
    sums = Sums.of(writer, numbers)
    for row, pair in enumerate((a, b, a + b) for a, b in sums.numbers):
        for at_BK, number in zip((sums.a_at_BK, sums.b_at_BK, sums.answer_at_BK), pair, strict=True):
            digits = str(number)[::-1]
            for k, place in enumerate(at_BK[row, : len(digits)].tolist()):
                group = words[int(sums.tokens_BT[row, place])]
                assert group[k % 2 if reverse == "integer" else -1 - k % 2] == digits[k]
            assert (at_BK[row, len(digits) :] == NOWHERE).all()
    with pytest.raises(ModelError, match=r"^this model writes several digits in one token: tokenizer\.digits"):
        writer.digit_ids()


@pytest.mark.parametrize("template", ["", "{a}+{b}=", "What is {a} plus {b}?", "7 + 8 = 15\n{a} + {b} ="])
@settings(max_examples=8)
@given(numbers=numbers)
def test_prompts_of_one_digit_a_token(template, numbers):
    tokenizer = text_tokenizer(1)
    writer = TextSums(tokenizer, template)
    sums = Sums.of(writer, numbers)
    check_digits(sums, writer.words(range(len(tokenizer))))
    check_order(sums)
    assert writer.words(writer.digit_ids()) == list(string.digits)
    a, b = numbers[0]
    asked = "".join(writer.words(sums.tokens_BT[0, : sums.equals_at_B[0] + 1].tolist()))
    assert asked == (template.format(a=a, b=b) or prompts.prompt(Problem("add", "integer", str(a), str(b), "", 0)))
    assert asked[int(sums.operator_at_B[0])] == ("p" if "plus" in template else "+")


def test_tokens_of_three_digits_hold_all_of_theirs_and_have_no_single_digits():
    tokenizer = text_tokenizer(3)
    writer = TextSums(tokenizer, "{a}+{b}=")
    written = writer.write(12345, 67)
    assert tokenizer.convert_ids_to_tokens(written.ids) == ["123", "45", "+", "67", "=", "124", "12", "<eos>"]
    assert written[1:] == ([1, 1, 0, 0, 0], [3, 3], [6, 6, 5, 5, 5], 2, 4, False)
    with pytest.raises(ModelError, match=r"^this tokenizer puts several digits in one token"):
        writer.digit_ids()


@pytest.mark.parametrize(
    "template", ["{a}+{b", "{b}+{a}=", "{a}+", "{a}{b}=", "{a} {b}", "{a}+{b}+{a}", "{}+{}", "a+b", "{a}+{c}"]
)
def test_templates_without_two_numbers_and_something_between_are_one_line(template):
    with pytest.raises(TaskError, match=r"should have \{a\}, something between, and \{b\}, once each$") as caught:
        TextSums(text_tokenizer(1), template).write(1, 2)
    assert "\n" not in str(caught.value)


def test_braces_that_are_doubled_stand_for_themselves():
    writer = TextSums(text_tokenizer(1), "{{x}} {a}+{b}=")
    written = writer.write(12, 9)
    assert "".join(writer.words(written.ids[: written.equals_at + 1])) == "{x} 12+9="


def test_a_digit_without_a_token_is_named_in_one_line():
    tokenizer = text_tokenizer(1)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("4", "removed"), pre_tokenizers.Split(Regex("."), "isolated")]
    )
    with pytest.raises(ModelError, match=r"^'4', character 1 of '14\+1=15', has 0 tokens instead of one$"):
        TextSums(tokenizer, "{a}+{b}=").write(14, 1)


def test_a_model_that_knows_no_additions_is_told_so():
    with pytest.raises(TaskError, match=r"no task add_integer; it has: max_integer$"):
        notated(FormatConfig(), tasks=("max_integer",)).write(1, 2)


@pytest.mark.parametrize("writer", [notated(FormatConfig()), TextSums(text_tokenizer(1))], ids=["notation", "text"])
def test_no_additions_are_refused(writer: SumWriter):
    with pytest.raises(TaskError, match=r"^there are no sums to ask$"):
        Sums.of(writer, [])


def test_parts_keep_columns_and_padding_of_the_whole():
    sums = Sums.of(notated(FormatConfig()), [(1, 2), (999, 1), (45, 6)])
    part = sums.part(slice(1, 3))
    assert len(part) == 2
    assert part.numbers == sums.numbers[1:]
    assert part.columns.sum.tolist() == sums.columns.sum[1:].tolist()
    for name in ("tokens_BT", "a_at_BK", "query_at_BK", "equals_at_B", "end_at_B", "next_BT"):
        assert getattr(part, name).equal(getattr(sums, name)[1:])


@pytest.mark.parametrize("format", [FORMATS["plain"], FORMATS["hints, reversed"]], ids=["plain", "hints, reversed"])
def test_one_wrong_token_anywhere_in_the_answer_is_not_exact(format):
    sums = Sums.of(notated(format), [(95, 5), (12, 9)])
    right_BTV = torch.nn.functional.one_hot(sums.next_BT.clamp(min=0), 200).float()
    assert sums.read(right_BTV).exact_B.all()
    assert sums.read(right_BTV).digits_BK[0].tolist() == [1, 1, 1]
    assert sums.read(right_BTV).digits_BK[1].nan_to_num(nan=-1).tolist() == [1, 1, -1]
    for place in range(int(sums.equals_at_B[0]), int(sums.end_at_B[0]) + 1):
        wrong_BTV = right_BTV.clone()
        wrong_BTV[0, place] = right_BTV[0, place].roll(1)
        found = sums.read(wrong_BTV)
        assert found.exact_B.tolist() == [False, True]
        assert (found.digits_BK[0] == 0).tolist() == (sums.query_at_BK[0] == place).tolist()


@torch.inference_mode()
def test_exact_is_what_greedy_decoding_gives():
    adder = llama_adder()
    sums = adder.sums([(a, b) for a in (7, 90, 505, 123456, 999999) for b in (0, 3, 95, 111111, 999999)])
    # without b_{k-1}, an adder is right only now and then
    deafened = [heads(0, lambda z_BTHZ: z_BTHZ * (torch.arange(5) != 3)[:, None])]
    tokens_BT = sums.tokens_BT.clone()
    tokens_BT[:, int(sums.equals_at_B[0]) + 1 :] = FieldSums.pad
    for place in range(int(sums.equals_at_B[0]), int(sums.end_at_B[0]) + 1):
        logits_BTV = adder.logits(replace(sums, tokens_BT=tokens_BT), deafened)
        tokens_BT[:, place + 1] = logits_BTV[:, place].argmax(-1)
    decoded_B = (tokens_BT == sums.tokens_BT).all(1)
    exact_B = sums.read(adder.logits(sums, deafened)).exact_B
    assert exact_B.equal(decoded_B)
    assert 0 < exact_B.float().mean() < 1


@settings(max_examples=8)
@given(
    st.lists(st.tuples(st.integers(0, 10**DIGITS - 1), st.integers(0, 10**DIGITS - 1)), min_size=1, max_size=4),
    st.booleans(),
)
def test_the_known_adders_write_as_they_say(numbers, ones_first):
    sums = Sums.of(FieldSums(ones_first), numbers)
    check_digits(sums, [*string.digits, *"+=.ep"])
    check_order(sums)


@pytest.fixture(scope="module")
def smollm2():
    return pretrained.load(ModelConfig(name="smollm2-135m-instruct"))[1]


@pytest.mark.slow
def test_a_template_that_ends_in_a_space_is_asked_as_in_training(smollm2):
    # {a} + {b} = is a template of training problems, and " 46" what a model learns to write after it
    trained = [*encode_prompt("12 + 34 =", smollm2), *smollm2.encode(" 46", add_special_tokens=False)]
    assert TextSums(smollm2, "{a} + {b} = ").write(12, 34).ids == [*trained, smollm2.eos_token_id]


@pytest.mark.slow
@pytest.mark.parametrize("template", ["", "{a}+{b}="])
def test_smollm2s_tokenizer_has_a_token_for_each_digit(smollm2, template):
    writer = TextSums(smollm2, template)
    sums = Sums.of(writer, [(12, 9), (358, 426), (1234567, 0), (999999, 1)])
    check_digits(sums, writer.words(range(len(smollm2))))
    check_order(sums)
    assert writer.words(writer.digit_ids()) == list(string.digits)


def test_bytes_of_the_toy_model_are_digits_too(toy_model: Path):
    tokenizer = PreTrainedTokenizerFast.from_pretrained(toy_model)
    writer = TextSums(tokenizer)
    sums = Sums.of(writer, [(12, 9), (1234567, 0)])
    check_digits(sums, writer.words(range(len(tokenizer))))
    check_order(sums)
