"""Ways to ask for a sum in running text (templates.yaml): some are for training, others are kept for testing.

A template gives the text before, between and after the two numbers. The numbers stay as they are written, for instance
reversed, so templates work with every format of integers.
"""

from pathlib import Path

import yaml

from lab.numbers.philox import philox
from lab.numbers.sampling import Problem
from lab.text.examples import Example
from lab.text.prompts import around_operands
from lab.text.wording import Wording

_SETS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

TRAINING: tuple[str, ...] = tuple(_SETS["training"])
"""Templates that training problems use, besides the benchmark's own words."""
VALIDATION: tuple[str, ...] = tuple(_SETS["validation"])
"""Templates that no training problem uses; designs may be compared on them."""
HELD_OUT: tuple[str, ...] = tuple(_SETS["held_out"])
"""Templates that no training problem uses. No design was chosen on them, but errors in one of them led to even
spacing."""
FRESH: tuple[str, ...] = tuple(_SETS["fresh"])
"""Further templates that no training problem uses. They were written after the errors in HELD_OUT had suggested other
designs, and no design was chosen on them, either."""


def worded(template: str, item: Example) -> Example:
    """An example of integer addition, rewritten in the words of a template."""
    before, between, after = around_operands(item.problem)
    a, _, b = item.prompt.removeprefix(before).removesuffix(after).partition(between)
    return Example(template.format(a=a, b=b), item.completion, item.problem)


class ManyTemplates(Wording):
    """Writes problems as another wording does, but draws their words: those of the wording, or of a training template.

    `luck` decides the draw; without luck, the wording's own words are used.
    """

    def __init__(self, wording: Wording, own: int = 1) -> None:
        """A wording with many templates.

        Args:
            wording: how problems are written otherwise.
            own: how many templates the wording's own words count as in the draw.
        """
        super().__init__()
        self.wording, self.own = wording, own

    def example(self, problem: Problem, luck: int | None = None) -> Example:
        item = self.wording.example(problem, luck)
        choice = len(TRAINING) if luck is None else philox("template", luck).random_raw() % (len(TRAINING) + self.own)
        return item if choice >= len(TRAINING) else worded(TRAINING[choice], item)
