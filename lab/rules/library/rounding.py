"""Rounds digits half up to a number of figures; rounding nines up makes one digit more, so the power grows by 1."""

from lab.rules.library.add_integer import add


def round_digits(digits, power, figures):
    kept = digits[:figures].ljust(figures, "0")
    if digits[figures : figures + 1] >= "5":
        kept = add(kept, "1")
        power = power + len(kept) - figures
    return kept[0] + "." + kept[1:figures] + "e" + str(power)
