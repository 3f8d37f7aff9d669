"""Digits rounded half up to so many figures; rounding up nines makes them one digit more."""

from lab.text.rules.add_integer import add


def round_digits(digits, power, figures):
    kept = digits[:figures].ljust(figures, "0")
    if digits[figures : figures + 1] >= "5":
        kept = add(kept, "1")
        power = power + len(kept) - figures
    return kept[0] + "." + kept[1:figures] + "e" + str(power)
