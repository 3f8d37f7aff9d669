"""NUPA's format hint with another example number, or with a word in its place.

    Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 57 + 8 =
    Directly return the answer as an integer without any comma separator, like 90412 . Add two numbers: 57 + 8 =
    Directly return the answer as an integer without any comma separator, like this . Add two numbers: 57 + 8 =

If the example is always 123, a model may learn that each question begins with this number (finding F-065).
"""

from lab.numbers.philox import philox
from lab.text.examples import Example
from lab.text.prompts import EXAMPLE_NUMBER, FORMAT_HINTS
from lab.text.wording import Rewording

LONGEST = 8
"""The most digits of a drawn example."""
ALIKE = 8
"""How many successive problems have the same example."""
WORD = "this"
"""What stands in place of a number of no digits."""


class DrawnExampleNumber(Rewording):
    """Draws the example number of each problem for which another wording uses NUPA's hint for integers.

    Its number of digits is uniform in 0..LONGEST. ALIKE successive values of `luck` give the same example, because
    prompts that begin alike are computed together (lab/training/collation.py).
    """

    def reworded(self, item: Example, luck: int) -> Example:
        hint = FORMAT_HINTS["integer"]
        if not item.prompt.startswith(hint):
            return item
        drawn = hint.replace(EXAMPLE_NUMBER, _number(luck))
        return item._replace(prompt=drawn + item.prompt.removeprefix(hint))


def _number(luck: int) -> str:
    digits, value = map(int, philox("example number", luck // ALIKE).random_raw(2))
    digits %= LONGEST + 1
    lowest = 10 ** (digits - 1) if digits else 0
    return str(lowest + value % (9 * lowest)) if digits else WORD
