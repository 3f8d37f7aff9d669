"""Contrasts of one's own: pairs from lists, files and tasks, metrics and roles, and what is refused in one line."""

import json

import numpy as np
import pytest
import torch

from lab.errors import ModelError, TaskError
from lab.numbers.tasks import TASKS
from lab.probing.addition.positions import TextSums
from lab.probing.answered import Answered
from lab.probing.bridge import Subject, bridge
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE, LAST, Contrast, Tokens, both_ways, logit_difference
from lab.probing.instruments import (
    ablation,
    atp_star,
    attribution,
    edges,
    interchange,
    lenses,
    patching,
    path_patching,
    steering,
)
from lab.probing.prompt_pairs import CHANGED, SO_FAR, PromptPairs
from lab.probing.task_pairs import CHANGES, changes_of, task_pairs
from tests.probing.known_adders import BY_HAND, native_adder
from tests.probing.test_any_model import drawn, tokenizer


@pytest.fixture(scope="module")
def subject() -> Subject:
    """A GPT-2 with random weights."""
    words = tokenizer()
    return bridge("drawn", drawn("gpt2", words), TextSums(words, "{a}+{b}="), words)


def of(base: str, source: str, *answers: str, **others) -> PromptPairs:
    return PromptPairs.of([base], [source], [tuple(answers)] if answers else [], **others)


def test_a_pair_of_texts_is_two_rows_with_the_answers_roles_and_tokens_that_were_meant(subject):
    contrast = of("12+9=", "12+7=", "21", "19", roles=r"(?P<second>\d)=", read="first").contrast(subject)
    words = ["".join(subject.writer.words(row.tolist())) for row in contrast.base.tokens_BT]
    assert words == ["12+9=", "12+7="]
    assert [subject.writer.words([row])[0] for row in contrast.base_id_BQ[:, 0].tolist()] == ["2", "1"]
    assert contrast.query_at_BQ.tolist() == [[4], [4]]
    for role, tokens in ((CHANGED, [3]), ("second", [3]), (LAST, [4]), (EVERYWHERE, [0, 1, 2, 3, 4])):
        assert contrast.at_BT(role)[0].nonzero()[:, 0].tolist() == tokens


def test_tokens_that_both_answers_begin_with_are_given_to_both_prompts(subject):
    contrast = of("1=", "2=", "13", "14").contrast(subject)
    assert ["".join(subject.writer.words(row.tolist())) for row in contrast.base.tokens_BT] == ["1=1", "2=1"]
    assert contrast.at_BT(SO_FAR)[0].tolist() == [False, False, True]
    assert contrast.at_BT(LAST)[0].tolist() == [False, False, True]


def test_a_file_says_the_same_as_two_lists(subject, tmp_path):
    row = {"base": "12+9=", "source": "12+7=", "base_answer": "2", "source_answer": "1"}
    lines = tmp_path / "pairs.jsonl"
    lines.write_text(json.dumps(row) + "\n")
    table = tmp_path / "pairs.csv"
    table.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    expected = of("12+9=", "12+7=", "2", "1").contrast(subject)
    for path in (lines, table):
        found = PromptPairs.file(path).contrast(subject)
        assert found.base.tokens_BT.equal(expected.base.tokens_BT)
        assert found.base_id_BQ.equal(expected.base_id_BQ)


def no_number(logits_BQV: torch.Tensor, contrast: Contrast) -> str:
    return "large"


def one_number(logits_BQV: torch.Tensor, contrast: Contrast) -> torch.Tensor:
    return logits_BQV.sum()


def nan(logits_BQV: torch.Tensor, contrast: Contrast) -> torch.Tensor:
    return logits_BQV[:, 0, 0] * float("nan")


MISTAKES = {
    "prompts of different lengths": (of("1+2=", "1+22=", "3", "2"), "pair 0: its prompts have 4 and 5 tokens"),
    "one prompt twice": (of("1+2=", "1+2=", "3", "4"), "pair 0: base and source are the same prompt, '1+2=3'"),
    "an answer of two tokens": (of("1+2=", "1+3=", "42", "3"), "the tokenizer splits the answer into '4', '2'; give"),
    "the same answer": (of("1+2=", "2+1=", "3", "3"), "the answers '3' and '3' have no token to tell apart"),
    "a role of no token": (of("1+2=", "1+3=", "3", "4", roles="(?P<point>[.])"), "no token has the role 'point'"),
    "no answers and no metric": (of("1+2=", "1+3="), "without a metric needs the answers"),
    "a metric that is a word": (of("1+2=", "1+3=", metric=no_number), "the metric gives str and not a finite number"),
    "a metric of all rows": (of("1+2=", "1+3=", metric=one_number), "the metric gives () and not a finite number"),
    "a metric that is nan": (of("1+2=", "1+3=", metric=nan), "not a finite number for each of 2 rows"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_no_contrast_is_refused_in_one_line(subject, name):
    pairs, message = MISTAKES[name]
    with pytest.raises(TaskError) as refused:
        patching.patch_heads(subject, pairs)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


CALLS = {
    "lists of different lengths": (lambda: PromptPairs.of(["1"], ["2", "3"]), "1 bases, 2 sources and 1 answers"),
    "one answer for two prompts": (lambda: PromptPairs.of(["1"], ["2"], [("3",)]), "should be two texts"),
    "roles that are no expression": (lambda: of("1=", "2=", "1", "2", roles="(?P<a>"), "no regular expression"),
    "a metric that is a number": (lambda: of("1=", "2=", metric=3), "it should be a function"),
    "a missing file": (lambda: PromptPairs.file("nowhere.jsonl"), "nowhere.jsonl: cannot be read"),
    "a task that there is not": (lambda: task_pairs("max_real", "first", 3, 2, 0), "task 'max_real': should be one of"),
    "a change that there is not": (lambda: task_pairs("max_float", "all", 3, 2, 0), "change 'all': should be one of"),
    "an order that does not matter": (lambda: task_pairs("add_integer", "order", 3, 2, 0), "does not depend on"),
    "a length of a number": (lambda: task_pairs("length_integer", "first", 5, 2, 0), "no change of one digit"),
    "a point of an integer": (lambda: task_pairs("add_integer", "point", 3, 2, 0), "no point that can move"),
}


@pytest.mark.parametrize("name", CALLS)
def test_pairs_that_cannot_be_made_are_refused_in_one_line(name):
    call, message = CALLS[name]
    with pytest.raises(TaskError) as refused:
        call()
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_role_that_the_contrast_does_not_have_is_named_with_those_that_it_has(subject):
    with pytest.raises(TaskError, match=r"^there is no place 'tens of a': .*everywhere, changed, last token$"):
        patching.patch_heads(subject, of("1+2=", "1+3=", "3", "4"), ["tens of a"])


def test_a_model_that_fails_is_refused_before_anything_is_patched(subject):
    contrast = of("1+2=", "1+3=", "3", "4").contrast(subject)
    right = Answered(subject, contrast).run(8).right_B[0]
    swapped = of("1+2=", "1+3=", "4", "3").contrast(subject)
    wrong = contrast if not right else swapped
    if Answered(subject, wrong).run(8).right_B.any():
        pytest.skip("the model answers both")
    with pytest.raises(ModelError, match=r"it answers both prompts right in 0 % of 1 pairs, and at least 50 %"):
        patching.patch_heads(subject, wrong)


def test_an_instrument_finds_the_same_whether_pairs_know_additions_or_are_tokens_alone():
    """The carry's pair that is worked out by hand in test_patching, given as tokens."""
    adder = native_adder()
    known = BY_HAND.contrast(adder)
    own = Contrast(
        base=Tokens(known.base.tokens_BT), source=Tokens(known.source.tokens_BT), query_at_BQ=known.query_at_BQ,
        base_id_BQ=known.base_id_BQ, source_id_BQ=known.source_id_BQ, roles={}, pair_B=known.pair_B,
        direction_B=known.direction_B,
    )  # fmt: skip
    for measure in (patching.patch_heads, edges.attribute):
        pairs, tokens = (measure(adder, one) for one in (BY_HAND, own))
        pairs, tokens = (getattr(one, "effect", one) for one in (pairs, tokens))
        assert (next(iter(pairs.axes)), next(iter(tokens.axes))) == ("carry", "direction")
        np.testing.assert_allclose(pairs.value, tokens.value, atol=1e-4)


def test_a_metric_of_ones_own_gives_the_effects_of_the_logit_difference_if_it_is_twice_that():
    adder = native_adder()
    contrast = BY_HAND.contrast(adder)
    double = Contrast(**{name: value for name, value in vars(contrast).items() if name not in ("subject", "column")}
                      | {"metric": lambda logits, part: 2 * logit_difference(logits, part)})  # fmt: skip
    one, other = (patching.patch_heads(adder, pairs) for pairs in (contrast, double))
    np.testing.assert_allclose(one.effect.value, other.effect.value, atol=1e-4)
    np.testing.assert_allclose(2 * one.gap.value, other.gap.value, rtol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_pairs_except_lengths_which_no_digit_changes(task):
    length = 5 if "integer" in task or "float" in task else 3
    found = changes_of(task, length)
    assert bool(found) == (not task.startswith("length"))
    for change in found[:2]:
        base, source = (side[0] for side in task_pairs(task, change, length, 1, 0)[:2])
        assert base.answer != source.answer
        if change != "order":
            numbers = [f"{one.a} {one.b}" for one in (base, source)]
            assert len(numbers[0]) == len(numbers[1])


@pytest.mark.parametrize("change", CHANGES)
def test_pairs_of_a_task_differ_in_what_was_asked_for(change):
    task = {"order": "truediv_integer", "point": "add_float"}.get(change, "max_hard_integer")
    for base, source in zip(*task_pairs(task, change, 5, 8, seed=3)[:2], strict=True):
        differ = [at for at, (own, other) in enumerate(zip(base.answer, source.answer, strict=False)) if own != other]
        if change in ("first", "middle", "last"):
            assert (differ[0] == 0, differ == [len(base.answer) - 1]) == (change == "first", change == "last")
        if change == "comparison":
            assert (base.answer == base.a) != (source.answer == source.a)
        if change == "order":
            assert (base.a, base.b) == (source.b, source.a)
        if change == "point":
            assert base.a.replace(".", "") == source.a.replace(".", "")


HEAD = Component("head", 0, 1)
EVERY = {
    "heads": patching.patch_heads,
    "inputs": patching.patch_inputs,
    "neurons": lambda model, pairs: patching.patch_neurons(model, pairs, [Component("neuron", 1, 5)]),
    "streams": patching.patch_residuals,
    "attribution": lambda model, pairs: attribution.screen(model, pairs, top=3),
    "atp star": atp_star.atp_star,
    "edges": lambda model, pairs: edges.attribute(model, pairs, 2),
    "paths": lambda model, pairs: path_patching.patch_paths(model, pairs, [HEAD], path_patching.receivers(model)),
    "ablation": lambda model, pairs: ablation.ablate(model, pairs, [(HEAD,)]),
    "lens": lenses.logit_lens,
    "logit attribution": lenses.direct_attribution,
    "interchange": lambda model, pairs: interchange.interchange(model, pairs, steps=2),
    "steering": steering.steer,
}
OWN = PromptPairs.of(
    ["12+34=", "15+31=", "42+14=", "17+17="], ["12+35=", "15+32=", "42+15=", "17+19="],
    [("46", "47"), ("46", "47"), ("56", "57"), ("34", "36")], read="first",
)  # fmt: skip


@pytest.mark.parametrize("digits", [1, 2])
@pytest.mark.parametrize("name", EVERY)
def test_every_instrument_takes_any_pairs_and_several_digits_a_token(name, digits, monkeypatch):
    def every_pair(subject, pairs, batch_size):
        return Answered(subject, pairs).run(batch_size)

    monkeypatch.setattr(Answered, "of_right_pairs", every_pair)  # models drawn at random answer nothing
    words = tokenizer(*map(str, range(10, 100))) if digits == 2 else tokenizer()
    model = bridge("drawn", drawn("gpt2", words), TextSums(words, "{a}+{b}="), words)
    EVERY[name](model, OWN)


def test_patched_inputs_of_a_head_are_what_makes_it_write():
    """The heads that fetch the ones digits always look at the same token: values matter, patterns do not."""
    adder = native_adder()
    found = patching.patch_inputs(adder, BY_HAND)
    heads = patching.patch_heads(adder, BY_HAND).effect
    for layer, head in adder.known.carry_heads:
        at = {"layer": layer, "head": head, "place": EVERYWHERE}
        np.testing.assert_allclose(found["v"].effect.at(**at).value, heads.at(**at).value, atol=0.02)
        np.testing.assert_allclose(found["pattern"].effect.at(**at).value, [0, 0], atol=0.02)


def test_one_pair_is_both_both_ways():
    pair_B, direction_B = both_ways(2)
    assert pair_B.tolist() == [0, 1, 0, 1]
    assert direction_B.tolist() == [0, 0, 1, 1]
