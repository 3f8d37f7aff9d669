import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lab.config.finetuning import AlignmentConfig, LoraConfig
from lab.errors import ModelError
from lab.models import adapters
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.text.wording import Wording
from lab.trees.losses import tree_loss
from lab.trees.paths import attend_along_paths
from lab.tune.alignment_loss import AlignedLoss, check_aligned, log_attention
from lab.tune.collation import PrefixTreeCollator
from lab.tune.problem_sets import Rows, Selection, problem_set

HEADS = AlignmentConfig(first=[(1, 0)], second=[(0, 3)], weight=0.5)


@pytest.fixture
def model(toy_model):
    return AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="eager")


@pytest.fixture
def inputs(toy_model):
    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    cells = [Cell(TASKS["add_integer"], 3), Cell(TASKS["multiply_easy_fraction"], 2)]
    rows = problem_set(Selection(cells, 0), "train", 4, Rows(tokenizer, Wording(), aligned=True)).examples
    return PrefixTreeCollator().of_rows([rows[place] for place in range(4)])


def test_the_loss_looks_at_the_attention_that_the_model_pays(model, inputs):
    with torch.no_grad():
        mask = torch.where(inputs["attention_mask"], 0.0, torch.finfo(torch.float32).min)
        ids = {"input_ids": inputs["input_ids"], "position_ids": inputs["position_ids"]}
        patterns = model(**ids, attention_mask=mask, output_attentions=True).attentions
        seen = {}
        hook = model.model.layers[1].self_attn.register_forward_pre_hook(
            lambda module, _, given: seen.update(it=(module, given["hidden_states"][0], given["position_embeddings"])),
            with_kwargs=True,
        )
        model(**ids, attention_mask=mask)
        hook.remove()
        queries = inputs["first_at"][:, 0]
        found = log_attention(seen["it"], 2, queries, inputs["attention_mask"][0, 0])
    torch.testing.assert_close(found.exp(), patterns[1][0, 2, queries], atol=1e-5, rtol=1e-4)


def test_it_is_the_trees_loss_and_the_weighted_misses_of_each_head(toy_model, inputs):
    model = AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa").train()
    with torch.no_grad():
        plain = tree_loss(model, inputs)
        both = AlignedLoss(HEADS)(model, inputs) - plain
        first = AlignedLoss(HEADS.model_copy(update={"second": []}))(model, inputs) - plain
        second = AlignedLoss(HEADS.model_copy(update={"first": []}))(model, inputs) - plain
        heavier = AlignedLoss(HEADS.model_copy(update={"weight": 1.0}))(model, inputs) - plain
    assert first > 0
    assert second > 0
    torch.testing.assert_close(both, first + second, rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(heavier, 2 * both, rtol=1e-3, atol=1e-2)


def test_attention_along_paths_does_not_change_the_loss(toy_model):
    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    rows = problem_set(Selection([Cell(TASKS["add_integer"], 3)], 0), "train", 4, Rows(tokenizer, Wording(), True))
    batch = [rows.examples[place] for place in range(4)]
    model = AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa").train()
    with torch.no_grad():
        expected = AlignedLoss(HEADS)(model, PrefixTreeCollator(model=model).of_rows(batch))
        attend_along_paths(model)
        inputs = PrefixTreeCollator(model=model).of_rows(batch)
        found = AlignedLoss(HEADS)(model, inputs)
    assert "found_N" in inputs
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)


def test_in_validation_it_is_the_trees_loss(model, inputs):
    with torch.no_grad():
        plain = tree_loss(model.eval(), inputs)
        assert torch.equal(AlignedLoss(HEADS)(model, inputs), plain)


@pytest.mark.slow
def test_training_on_it_turns_the_heads_to_their_digits(toy_model, inputs):
    model = AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32, attn_implementation="sdpa")
    tuned = adapters.attach(model, LoraConfig(rank=8, alpha=8), seed=0).train()
    loss = AlignedLoss(HEADS)
    optimizer = torch.optim.AdamW([weight for weight in tuned.parameters() if weight.requires_grad], lr=1e-2)

    def missed() -> float:
        with torch.no_grad():
            return float(loss(tuned, inputs) - tree_loss(tuned, inputs))

    before = missed()
    for _ in range(30):
        optimizer.zero_grad()
        (loss(tuned, inputs) / 10).backward()
        optimizer.step()
    assert missed() < before / 2


def test_fractions_have_no_digits_to_align(inputs, toy_model):
    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    cells = [Cell(TASKS["multiply_easy_fraction"], 2)]
    fractions = problem_set(Selection(cells, 0), "train", 2, Rows(tokenizer, Wording(), aligned=True)).examples
    only = PrefixTreeCollator().of_rows([fractions[place] for place in range(2)])
    assert only["first_at"].shape == only["second_at"].shape == (0, 2)
    assert len(inputs["first_at"])


def test_a_head_that_the_model_has_not_is_refused(model, toy_model):
    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    with pytest.raises(ModelError, match="no head"):
        check_aligned(model, tokenizer, AlignmentConfig(first=[(2, 0)]))
    check_aligned(model, tokenizer, HEADS)


def test_tokens_of_several_digits_cannot_be_aligned(model, toy_model):
    tokenizer = AutoTokenizer.from_pretrained(toy_model)
    tokenizer.add_tokens(["12"])
    with pytest.raises(ModelError, match="one digit a token"):
        check_aligned(model, tokenizer, HEADS)
    check_aligned(model, tokenizer, AlignmentConfig())
