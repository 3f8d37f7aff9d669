"""NUPA's format hint with another example number, or with a word in its place.

    Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 57 + 8 =
    Directly return the answer as an integer without any comma separator, like 90412 . Add two numbers: 57 + 8 =
    Directly return the answer as an integer without any comma separator, like this . Add two numbers: 57 + 8 =

If the example is always 123, a model may learn that each question begins with this number (finding F-065).
"""

from lab.numbers.philox import philox
from lab.text.examples import Example
from lab.text.prompts import EXAMPLE_NUMBER, FORMAT_HINTS

LONGEST = 8
"""The largest number of digits of a drawn example number."""
ALIKE = 8
"""How many successive problems have the same example number."""
WORD = "this"
"""The word that replaces a number of no digits."""


def draw_example_number(item: Example, seed: int) -> Example:
    """Draws the example number of a prompt that begins with NUPA's hint for integers; other prompts stay as they are.

    The number of digits is uniform in 0..LONGEST. ALIKE successive values of `seed` give the same example number,
    because prompts that begin alike are computed together (lab/tune/collation.py).
    """
    hint = FORMAT_HINTS["integer"]
    if not item.raw.startswith(hint):
        return item
    drawn = hint.replace(EXAMPLE_NUMBER, _number(seed))
    return item._replace(prompt=drawn + item.raw.removeprefix(hint))


def _number(seed: int) -> str:
    digits, value = map(int, philox("example number", seed // ALIKE).random_raw(2))
    digits %= LONGEST + 1
    lowest = 10 ** (digits - 1) if digits else 0
    return str(lowest + value % (9 * lowest)) if digits else WORD
