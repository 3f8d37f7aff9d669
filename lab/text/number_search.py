r"""The first number of a form in a text, in time that grows with the length of the text and no faster.

`re` looks for [0-9]+\.[0-9]+ from each digit of a run of digits, and reads the rest of the run each time: steps that
grow with the square of its length, seconds for 40,000 digits. Here a run is looked at from its last digit, which is
where the rest of the number must follow, and its first digit is then found backwards.
"""

import re


class NumberSearch:
    def __init__(self, digit: str, rest: str = "", backwards: str = "") -> None:
        """Of numbers of the form (digit)+rest, both regular expressions.

        `rest` is empty, or begins with what no digit does. `backwards` matches a digit whose characters stand in
        reverse; it may be left out for a digit of one character.
        """
        self.number = re.compile(f"(?:{digit})+{rest}")
        self._last_digit_on = re.compile(digit + rest)
        self._digits_before = re.compile(f"(?:{backwards or digit})*")

    def search(self, text: str) -> re.Match[str] | None:
        """What `self.number.search` finds."""
        found = self._last_digit_on.search(text)
        if found is None:
            return None
        before = self._digits_before.match(text[: found.start()][::-1])
        return self.number.match(text, found.start() - (before.end() if before else 0))
