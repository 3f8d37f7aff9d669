"""The integer that a response ends with, however it is written: `final`, the third reading of a sum."""

from lab.text.final_number import final, last_box, marked

__all__ = ["final_number", "last_box", "marked"]


def final_number(text: str) -> str | None:
    """The final number as sign and ASCII digits; None if the response does not end with an integer.

    15.0 is the integer 15; 1.5, 6/3 and 2e9 are not written as integers (lab/text/final_number.py).
    """
    found = final(text)
    return found and found.integer()
