"""Problems that follow a passage of ordinary text, as a question in a document does.

    Return the dictionary's keys as a list. The order is
    What is 4321 plus 98? The answer is 4419

Without passages, every training text begins with its question, and a model has never seen text before a question.
"""

from lab.numbers.philox import philox
from lab.text.docstrings import TRAINING, docstrings
from lab.text.examples import Example

LONGEST = 200
"""The largest number of characters in a passage."""
BREAKS = (" ", "\n", "\n\n")
"""What may separate a passage from the problem after it."""


class AfterPassage:
    """Puts a passage of docstrings before some problems."""

    def __init__(self, share: float) -> None:
        """`share`: the probability of a passage."""
        self.share, self.text = share, docstrings(TRAINING)

    def __call__(self, item: Example, seed: int) -> Example:
        return item._replace(prompt=self._passage(seed) + item.raw)

    def _passage(self, seed: int) -> str:
        """A passage and a break, or the empty string. Sometimes nothing of the passage is left but the break."""
        chance, start, length, end = map(int, philox("text before a problem", seed).random_raw(4))
        if chance >= self.share * 2**64:
            return ""
        start %= len(self.text) - LONGEST
        passage = self.text[start : start + 1 + length % LONGEST]
        _, _, whole_words = passage.partition(" ")  # the first word may have lost its beginning
        return whole_words.strip() + BREAKS[end % len(BREAKS)]
