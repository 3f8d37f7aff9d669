"""Problems that follow a passage of ordinary text, as a question in a document does.

    Return the dictionary's keys as a list. The order is
    What is 4321 plus 98? The answer is 4419

Without them, each question of the training begins its text, and any text before a later question is new to the model.
"""

from lab.numbers.philox import philox
from lab.text.documentation import TRAINING, documentation
from lab.text.examples import Example
from lab.text.wording import Rewording, Wording

LONGEST = 200
"""The largest number of characters in a passage."""
BREAKS = (" ", "\n", "\n\n")
"""What may separate a passage from the problem after it."""


class AfterPassage(Rewording):
    """Puts passages of docstrings before some problems of another wording."""

    def __init__(self, wording: Wording, share: float) -> None:
        """Wraps a wording.

        Args:
            wording: how the problem itself is written.
            share: the probability of a passage.
        """
        super().__init__(wording)
        self.share, self.text = share, documentation(TRAINING)

    def reworded(self, item: Example, luck: int) -> Example:
        return item._replace(prompt=self._passage(luck) + item.prompt)

    def _passage(self, luck: int) -> str:
        """A passage and a break, or the empty string. Sometimes nothing of the passage is left but the break."""
        chance, start, length, end = map(int, philox("text before a problem", luck).random_raw(4))
        if chance >= self.share * 2**64:
            return ""
        start %= len(self.text) - LONGEST
        passage = self.text[start : start + 1 + length % LONGEST]
        _, _, whole_words = passage.partition(" ")  # the first word may have lost its beginning
        return whole_words.strip() + BREAKS[end % len(BREAKS)]
