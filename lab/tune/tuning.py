"""The training of adapters, as a config of `lab.finetune` describes it."""

from dataclasses import replace

from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import FinetuneConfig
from lab.models import adapters, swaps
from lab.trees.losses import AnswerLoss, tree_loss
from lab.trees.paths import attend_along_paths
from lab.tune.collation import PrefixTreeCollator
from lab.tune.memory import check_memory
from lab.tune.problem_sets import TrainingSets
from lab.tune.replay_loss import ReplayLoss
from lab.tune.trainer import Training


def adapter_training(
    config: FinetuneConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sets: TrainingSets
) -> Training:
    """The training of new adapters on a model; the swap that they need is saved beside them."""
    return replace(
        _plain_training(config, model, tokenizer, sets),
        model=adapters.attach(model, config.adapter, config.seed),
        answer_loss=answer_loss(config, tokenizer),
        rates=dict.fromkeys(biased(model), config.training.bias_learning_rate),
        beside={swaps.FILE: config.swap.model_dump_json(indent=2)},
    )


def biased(model: PreTrainedModel) -> list[str]:
    """The names of the parts whose weights are added to attention scores."""
    return [f"parts.{kind}" for kind, part in getattr(model, "parts", {}).items() if part.biases]


def check_memory_of_steps(
    config: FinetuneConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sets: TrainingSets
) -> None:
    """Raises ModelError if a training step needs more memory than is free; see `check_memory`. The model is still
    without adapters, whose weights are few beside its activations."""
    some = range(min(len(sets.train.examples), _LOOKED_AT))
    check_memory(_plain_training(config, model, tokenizer, sets), sets.train.rows(some), trained=0)


_LOOKED_AT = 128
"""Training rows among which the longest ones are looked for."""


def _plain_training(
    config: FinetuneConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, sets: TrainingSets
) -> Training:
    """The training of the model itself."""
    attend_along_paths(model)
    collator = PrefixTreeCollator(model)
    return Training(model, tokenizer, config.training, sets, config.seed, collator.of_rows)


def answer_loss(config: FinetuneConfig, tokenizer: PreTrainedTokenizerBase) -> AnswerLoss:
    """The loss of the answers, and the divergence on ordinary text if the config asks for it."""
    replay = config.training.replay
    return ReplayLoss(replay, tokenizer, tree_loss) if replay.tokens else tree_loss
