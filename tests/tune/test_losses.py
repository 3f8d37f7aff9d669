import pytest
import torch
from torch.nn.functional import cross_entropy, kl_div

from lab.trees.losses import divergence, negative_log_likelihood

LOGITS, OTHERS, LABELS = (
    torch.tensor([[0.5, -2.0, 3.0], [90.0, 0.0, -90.0]]),
    torch.tensor([[1.0, 1.0, 1.0], [80.0, 1.0, -4.0]]),
    torch.tensor([1, 2]),
)


def value_and_gradient(loss):
    logits = LOGITS.clone().requires_grad_()
    total = 2 * loss(logits)
    total.backward()
    return total.detach(), logits.grad


@pytest.mark.parametrize(
    ("ours", "torchs"),
    [
        (
            lambda logits: negative_log_likelihood(logits, LABELS),
            lambda logits: cross_entropy(logits, LABELS, reduction="sum"),
        ),
        (
            lambda logits: divergence(logits, OTHERS),
            lambda logits: kl_div(logits.log_softmax(-1), OTHERS.log_softmax(-1), reduction="sum", log_target=True),
        ),
    ],
)
def test_losses_and_gradients_are_those_of_torch_even_where_a_probability_is_zero(ours, torchs):
    for found, expected in zip(value_and_gradient(ours), value_and_gradient(torchs), strict=True):
        torch.testing.assert_close(found, expected)


def test_nothing_diverges_from_itself():
    assert divergence(LOGITS, LOGITS) == pytest.approx(0, abs=1e-6)


def test_a_word_that_both_models_forbid_does_not_count():
    """A swapped tokenizer forbids words by logits of minus infinity."""
    first, second = (logits.clone() for logits in (LOGITS, OTHERS))
    kept = [word for word in range(LOGITS.shape[-1]) if word != 1]
    first[..., 1] = second[..., 1] = -torch.inf
    assert divergence(first, second) == pytest.approx(float(divergence(LOGITS[..., kept], OTHERS[..., kept])), rel=1e-5)
