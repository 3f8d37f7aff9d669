"""An auxiliary loss that keeps a model's predictions on ordinary text while it learns about numbers.

With each batch, a passage of text goes through the network with the adapters and without them. The divergence between
the two predictions of the next token is added to the loss (learning without forgetting, Li and Hoiem 2016, arXiv
1606.09282). Passages come from `lab.text.docstrings`. The index of the batch's first problem decides which
passage is drawn, so a resumed run draws the same ones.

Shapes: T tokens of a passage, V words of the vocabulary.
"""

from typing import Any

import torch
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import ReplayConfig
from lab.numbers.philox import philox
from lab.text.docstrings import TRAINING, docstrings
from lab.text.examples import IGNORED
from lab.trees.losses import AnswerLoss, divergence


class ReplayLoss:
    """Another loss plus, during training, the weighted divergence on a passage.

    The divergence is multiplied by the number of answer tokens, because the trainer divides the whole loss by it.
    """

    def __init__(self, config: ReplayConfig, tokenizer: PreTrainedTokenizerBase, answer_loss: AnswerLoss) -> None:
        self.config, self.answer_loss = config, answer_loss
        self.tokens = tokenizer.encode(docstrings(TRAINING), add_special_tokens=False)

    def __call__(self, model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        total = self.answer_loss(model, inputs)
        if not model.training:
            return total
        answers = (inputs["shift_labels"] != IGNORED).sum()
        passage = self._passage(int(inputs["index"])).to(answers.device)
        return total + self.config.weight * answers * change(model, passage, self.config.every)

    def _passage(self, index: int) -> torch.Tensor:
        start = philox("passage", index).random_raw() % max(1, len(self.tokens) - self.config.tokens)
        return torch.tensor([self.tokens[start : start + self.config.tokens]])


def change(model: Any, ids_1T: torch.Tensor, every: int = 1) -> torch.Tensor:
    """The mean divergence KL(without adapters || with adapters) of the next-token predictions, in nats per token.

    Args:
        model: the model, with adapters.
        ids_1T: the tokens of the passage.
        every: one prediction in this many is compared. The head over the whole vocabulary costs more than the layers,
            and neighbouring predictions change alike.
    """
    compared = torch.arange(every - 1, ids_1T.shape[1], every, device=ids_1T.device)
    whole = getattr(model, "module", model)  # unwrapped, if there are several processes
    with torch.no_grad(), whole.disable_adapter():
        expected_TV = _logits(model, ids_1T, compared)
    return divergence(_logits(model, ids_1T, compared), expected_TV) / len(compared)


def _logits(model: Any, ids_1T: torch.Tensor, compared: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids_1T, use_cache=False, logits_to_keep=compared).logits[0]
