"""Decides how many lines of a trace are left out in training, so that a model learns to do without them (ICoT-SI).

Deng et al. 2024 (arXiv 2405.14838), section 3: training proceeds in stages. At each stage, more of the beginning of a
chain of thought is removed, and the model has to write the rest without it. Removal smoothing lets stages overlap: with
a probability proportional to exp(-4 o), a sample loses o tokens more than its stage prescribes. The optimizer's state
is reset when a stage begins.

Here whole lines are removed, not single tokens.
"""

import itertools
import math
from typing import Any

from transformers import TrainerCallback

from lab.config.pretraining import InternalizeConfig
from lab.numbers.philox import philox

_SHARPNESS = 4
"""The parameter lambda of removal smoothing in section 3 of the paper."""


class Removal:
    """Says how many lines are removed from each training sample.

    Args:
        config: the stages.
        batch_size: the number of samples in a step.
    """

    def __init__(self, config: InternalizeConfig, batch_size: int) -> None:
        self.config, self.batch_size = config, batch_size

    def __call__(self, index: int) -> int:
        """The number of lines that are removed from sample `index` of a training."""
        return self.stage(index // self.batch_size) * self.config.lines + self._extra(index)

    def stage(self, step: int) -> int:
        """The stage of a step. It is 0 in the first `whole` steps, in which only smoothing removes lines."""
        config = self.config
        return 0 if step < config.whole else min(1 + (step - config.whole) // config.every, config.stages)

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
