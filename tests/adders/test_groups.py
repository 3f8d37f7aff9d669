"""Groups of seeds: each is trained as it would be alone."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.adders.config import AdderConfig, AdderTrainingConfig
from lab.adders.groups import Batch, BatchedModel, Group, complements_at, initial_rows, rate_at
from lab.adders.initial import draw
from lab.adders.rows import batch
from lab.config.loading import load

CONFIGS = Path(__file__).parents[2] / "configs"


def config_of(name: str, seeds: int = 3) -> AdderConfig:
    return load(AdderConfig, CONFIGS / f"adder_{name}.yaml", [f"group={{seeds: {seeds}, halvings: []}}"])


@pytest.mark.parametrize("name", ["gpt", "tiny", "plain", "arc", "record", "ramp"])
def test_the_gradient_of_each_seed_of_a_group_is_what_it_is_alone(name):
    config = config_of(name)
    batched = BatchedModel(config)
    rows_SP = initial_rows(config)
    problems = Batch.of(batch(batched.adder, "train", 0, 0, 6))
    losses_S, together_SP = batched.gradients(rows_SP, problems)
    for place, row_P in enumerate(rows_SP):
        alone_P = row_P.clone().requires_grad_()
        logits_BAV = batched.model(problems.ids, 11, batched.tables(alone_P))
        loss = torch.nn.functional.cross_entropy(logits_BAV.flatten(0, 1), problems.answers.flatten())
        torch.testing.assert_close(losses_S[place], loss.detach())
        torch.testing.assert_close(together_SP[place], torch.autograd.grad(loss, alone_P)[0], rtol=1e-3, atol=1e-4)


def test_the_first_numbers_of_a_seed_do_not_depend_on_how_large_its_group_is():
    few, many = config_of("tiny", 2), config_of("tiny", 5)
    assert torch.equal(initial_rows(few), initial_rows(many)[:2])


def test_numbers_begin_as_their_config_says():
    found = draw(config_of("plain").numbers, 7)
    assert 10 <= found["period"] <= 14
    assert found["gain_2"].abs().tolist() == [3, 3, 3]
    # queries and keys read one direction, the height of the arc above zero, which all digits share
    direction = found["query"][0] / found["query"][0].norm()
    assert torch.linalg.matrix_rank(torch.cat([found["query"], found["key"]])) == 1
    assert (found["digits"] @ direction).abs() == pytest.approx(torch.full((10,), 0.7), abs=0.25)
    neighbours = (found["digits"][1:] - found["digits"][:-1]).norm(dim=1)
    assert neighbours == pytest.approx(torch.full((9,), 2.4 / 9), abs=0.25)
    waves = draw(config_of("gpt").numbers, 0)["positions"]
    assert waves[0].tolist() == [0] * 8 + [1] * 8
    arc = torch.stack([draw(config_of("arc").numbers, seed)["arc"] for seed in range(300)])
    assert arc.mean(0).tolist() == pytest.approx([1, -1, 0.2], abs=0.05)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_optimizer_is_torchs_adamw_for_each_seed_with_its_gradient_clipped_alone(decay):
    config = AdderTrainingConfig(weight_decay=decay, warmup_steps=2, max_steps=10, clip=0.5)
    torch.manual_seed(0)
    rows_SP = torch.randn(2, 3)
    group = Group(rows_SP)
    theirs = [row.clone().requires_grad_() for row in rows_SP]
    optimizers = [torch.optim.AdamW([row], betas=config.betas, weight_decay=decay) for row in theirs]
    for step in range(5):
        gradients_SP = torch.randn(2, 3)
        group.update(gradients_SP, config)
        for row, gradient, optimizer in zip(theirs, gradients_SP, optimizers, strict=True):
            row.grad = gradient.clone()
            torch.nn.utils.clip_grad_norm_([row], 0.5)
            optimizer.param_groups[0]["lr"] = rate_at(step, config)
            optimizer.step()
    torch.testing.assert_close(group.rows_SP, torch.stack([row.detach() for row in theirs]), rtol=1e-4, atol=1e-6)


def test_the_seeds_of_lowest_loss_go_on_with_their_moments_and_the_best_weights_are_kept():
    group = Group(torch.arange(4.0)[:, None])
    group.mean_SP += 10 * torch.arange(4.0)[:, None]
    losses_S = torch.tensor([0.3, float("nan"), 0.1, 0.2])
    group.keep_best(losses_S, torch.tensor([0.5, 0.0, 0.5, 0.4]))
    assert group.best == {"accuracy": 0.5, "loss": pytest.approx(0.1), "seed": 2, "step": 0}
    group.halve(losses_S, 2)
    assert group.members == [2, 3]
    assert group.rows_SP.flatten().tolist() == [2, 3]
    assert group.mean_SP.flatten().tolist() == [20, 30]
    group.keep_best(torch.tensor([0.1, 0.05]), torch.tensor([0.2, 0.4]))
    assert group.best_P.tolist() == [2]


@settings(max_examples=25)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_a_state_survives_json_bit_for_bit(values):
    import json

    group = Group(torch.tensor([values]))
    group.keep_best(torch.zeros(1), torch.ones(1))
    again = Group(torch.zeros(1, 1))
    again.restore(json.loads(json.dumps(group.state())))
    assert torch.equal(again.rows_SP, group.rows_SP)
    assert torch.equal(again.best_P, group.best_P)
    assert again.state() == group.state()


def test_the_rate_rises_falls_and_what_is_mixed_in_fades_to_nothing():
    config = AdderTrainingConfig(max_steps=1000, warmup_steps=100, learning_rate=1.0, complements_end=0.5)
    assert rate_at(0, config) == pytest.approx(0.01)
    assert rate_at(99, config) == rate_at(100, config) == pytest.approx(1)
    assert rate_at(1000, config) == pytest.approx(0.01)
    assert [complements_at(step, config) for step in (0, 250, 500, 900)] == [1, 0.5, 0, 0]
