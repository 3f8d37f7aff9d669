"""The training of adapters, as a config of `lab.finetune` describes it."""

from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import FinetuneConfig
from lab.models import adapters, swaps
from lab.training.alignment_loss import AlignedLoss
from lab.training.collation import PrefixTreeCollator
from lab.training.problem_sets import TrainingSets
from lab.training.replay_loss import ReplayLoss
from lab.training.trainer import Training
from lab.trees.losses import AnswerLoss, tree_loss
from lab.trees.paths import attend_along_paths


def adapter_training(
    config: FinetuneConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sets: TrainingSets
) -> Training:
    """The training of new adapters on a model; the swap that they need is saved beside them."""
    attend_along_paths(model)
    collator = PrefixTreeCollator(config.training.share_prefixes, model)
    return Training(
        adapters.attach(model, config.adapter, config.seed),
        tokenizer,
        config.training,
        sets,
        config.seed,
        collator.of_rows,
        answer_loss(config, tokenizer),
        rates=dict.fromkeys(biased(model), config.training.bias_learning_rate),
        beside={swaps.FILE: config.swap.model_dump_json(indent=2)},
    )


def biased(model: PreTrainedModel) -> list[str]:
    """The names of the parts whose weights are added to attention scores."""
    return [f"parts.{kind}" for kind, part in getattr(model, "parts", {}).items() if part.biases]


def answer_loss(config: FinetuneConfig, tokenizer: PreTrainedTokenizerBase) -> AnswerLoss:
    """The loss of the answers, and the other losses that the config adds to it."""
    method, loss = config.training, tree_loss
    if method.alignment.first or method.alignment.second:
        loss = AlignedLoss(method.alignment)
    return ReplayLoss(method.replay, tokenizer, loss) if method.replay.tokens else loss
