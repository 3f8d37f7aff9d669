"""Traces that lose their lines during training, so that a model learns to do without them (ICoT-SI).

Deng et al. 2024 (arXiv 2405.14838), section 3: training proceeds in stages. At each stage, more of the beginning of a
chain of thought is removed, and the model has to write the rest without it. Removal smoothing lets stages overlap: with
a probability proportional to exp(-4 o), a sample loses o tokens more than its stage prescribes. The optimizer's state
is reset when a stage begins.

Here whole lines are removed, not single tokens.
"""

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from transformers import TrainerCallback

from lab.config.pretraining import PretrainConfig
from lab.numbers.philox import philox
from lab.numbers.sampling import Problem
from lab.text.rule_notation import LINE, RuleNotation
from lab.tune.problem_sets import TrainingSets
from lab.tune.sequences import sequence_sets
from lab.tune.trainer import Training

_SHARPNESS = 4
"""The parameter lambda of removal smoothing in section 3 of the paper."""


class Removal(NamedTuple):
    """Says how many lines are removed from each training sample."""

    batch_size: int
    """Number of samples in a step."""
    stages: int
    """Number of stages that remove lines."""
    whole: int
    """Number of steps before the first of these stages. Until then, traces are complete, except for the 2 % from which
    removal smoothing takes lines."""
    every: int
    """Number of steps of each stage. The last one continues to the end of training."""
    lines: int = 1
    """How many more lines each stage removes than the previous one."""

    def __call__(self, index: int) -> int:
        """The number of lines that are removed from sample `index` of a training."""
        return self.stage(index // self.batch_size) * self.lines + self._extra(index)

    def stage(self, step: int) -> int:
        """The stage of a step. It is 0 in the first `whole` steps, in which only smoothing removes lines."""
        return 0 if step < self.whole else min(1 + (step - self.whole) // self.every, self.stages)

    def begins(self, step: int) -> bool:
        """Whether a stage begins at a step."""
        return step > 0 and self.stage(step) != self.stage(step - 1)

    def _extra(self, index: int) -> int:
        share = philox("removed lines", index).random_raw() / 2**64
        return next(o for o in itertools.count() if share < 1 - math.exp(-_SHARPNESS * (o + 1)))


class ForgetAtStages(TrainerCallback):
    """Resets the optimizer's state when a stage begins."""

    def __init__(self, removal: Removal) -> None:
        self.removal = removal

    def on_step_begin(self, args, state, control, optimizer: Any = None, **kwargs: Any) -> None:
        if self.removal.begins(state.global_step):
            optimizer.state.clear()


class ShorterTraces(RuleNotation):
    """A notation whose samples lack the first lines of their traces. The answer always remains."""

    removed: Callable[[int], int]
    """How many lines a sample lacks; the argument is the sample's index."""

    @classmethod
    def of(cls, config: PretrainConfig, removed: Callable[[int], int]) -> "ShorterTraces":
        made = cls(config.data.rules, config.format, config.data.cells)
        made.removed = removed
        return made

    def trace(self, problem: Problem, seed: int | None = None) -> Sequence[str]:
        words = super().trace(problem, seed)
        if seed is None:
            return words
        ends = [0, *(end for end, word in enumerate(words, 1) if word == LINE)]
        return words[ends[min(self.removed(seed), len(ends) - 1)] :]


def internalizing(config: PretrainConfig, removal: Removal) -> Callable[[Training], Training]:
    """What turns the training of a config into one that removes lines; for `lab.pretrain.pretrain`.

    Validation problems have no trace lines at all, so that the model that is kept is the one that does best without
    them.
    """

    def changed(training: Training) -> Training:
        def sets(removed: Callable[[int], int]) -> TrainingSets:
            notation = ShorterTraces.of(config, removed)
            return sequence_sets(config.data, config.training, config.seed, notation, training.tokenizer)

        shorter = TrainingSets(sets(removal).train, sets(lambda index: sys.maxsize).valid)
        return replace(training, sets=shorter, callbacks=[*training.callbacks, ForgetAtStages(removal)])

    return changed
