import pytest
import torch

from lab.config.finetuning import LoraConfig, ReplayConfig
from lab.config.schema import ModelConfig
from lab.models import adapters, pretrained
from lab.text.docstrings import HELD_OUT, TRAINING, docstrings
from lab.trees.losses import tree_loss
from lab.tune.collation import PrefixTreeCollator
from lab.tune.replay_loss import ReplayLoss, change

TEXT = torch.tensor([[40, 72, 84, 84, 79, 12, 221, 90]])
ROWS = [{"prompt_ids": [17, 11, 18, 29], "completion_ids": [19, 0], "index": 5}]


@pytest.fixture
def tuned(toy_model):
    model, tokenizer = pretrained.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"))
    return adapters.attach(model, LoraConfig(rank=2), seed=0).train(), tokenizer


def shift(model, far: float) -> None:
    torch.manual_seed(0)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=far)


def test_new_adapters_change_nothing_and_the_further_they_go_the_more_they_do(tuned):
    model, _ = tuned
    assert float(change(model, TEXT).detach()) == pytest.approx(0, abs=1e-7)
    found = []
    for far in (0.01, 0.1):
        shift(model, far)
        found.append(float(change(model, TEXT).detach()))
    assert 0 < found[0] < found[1]


def test_every_second_prediction_is_half_of_them(tuned):
    model, _ = tuned
    shift(model, 0.1)
    each = torch.tensor([float(change(model, TEXT[:, : 2 * n], 2 * n).detach()) for n in (1, 2, 3, 4)])
    torch.testing.assert_close(change(model, TEXT, 2), each.mean())


def test_its_gradient_leads_back_to_the_untouched_model(tuned):
    model, _ = tuned
    shift(model, 0.1)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    before = change(model, TEXT)
    for weight, gradient in zip(weights, torch.autograd.grad(before, weights), strict=True):
        weight.data -= 1e-3 * gradient
    assert change(model, TEXT) < before


def test_a_passage_is_drawn_by_the_batch_and_counted_for_each_answer_token_of_training_alone(tuned):
    model, tokenizer = tuned
    shift(model, 0.1)
    loss = ReplayLoss(ReplayConfig(tokens=12, weight=0.5), tokenizer, tree_loss)
    inputs = PrefixTreeCollator(model).of_rows(ROWS)
    assert loss._passage(5).shape == (1, 12)
    assert not torch.equal(loss._passage(5), loss._passage(6))
    expected = tree_loss(model, inputs) + 0.5 * 2 * change(model, loss._passage(5))
    torch.testing.assert_close(loss(model, inputs), expected)
    assert loss(model.eval(), inputs) == tree_loss(model, inputs)


def test_the_test_reads_other_modules_than_training():
    assert not set(TRAINING) & set(HELD_OUT)
    assert min(len(docstrings(names)) for names in (TRAINING, HELD_OUT)) > 100_000


def test_no_docstring_of_the_test_is_trained_on_if_those_of_the_training_are_left_out():
    trained, tested = docstrings(TRAINING), docstrings(HELD_OUT, besides=TRAINING)
    assert len(tested) > 100_000
    assert not any(part in trained for part in tested.split("\n\n") if len(part) > 200)
