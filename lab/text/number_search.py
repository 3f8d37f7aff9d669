r"""Finds the first number of a given form in a text, in time linear in the length of the text.

`re` tries [0-9]+\.[0-9]+ from each digit of a run of digits, and reads the rest of the run each time. So its time grows
with the square of the run's length: seconds for 40,000 digits. This search first finds the last digit of the run
together with the rest of the number, and then goes backwards to the first digit.
"""

import re


class NumberSearch:
    def __init__(self, digit: str, rest: str = "", backwards: str = "") -> None:
        """Searches for numbers of the form (digit)+rest.

        Args:
            digit: regular expression of one digit.
            rest: regular expression of what follows the digits: empty, or something that cannot begin with a digit.
            backwards: regular expression of a digit whose characters are in reverse order; not needed if a digit is
                a single character.
        """
        self.number = re.compile(f"(?:{digit})+{rest}")
        self._last_digit_on = re.compile(digit + rest)
        self._digits_before = re.compile(f"(?:{backwards or digit})*")

    def search(self, text: str) -> re.Match[str] | None:
        """Finds the same match as `self.number.search`, but in linear time."""
        found = self._last_digit_on.search(text)
        if found is None:
            return None
        before = self._digits_before.match(text[: found.start()][::-1])
        return self.number.match(text, found.start() - (before.end() if before else 0))
