"""The larger of two numbers, from the ones digit on: the highest place where they differ decides."""

UNIT = 1


def larger(a, b):
    x, y = a, b
    ahead = False
    while x or y:
        ahead = ahead if int(x[-UNIT:] or 0) == int(y[-UNIT:] or 0) else int(x[-UNIT:] or 0) > int(y[-UNIT:] or 0)
        x, y = x[:-UNIT], y[:-UNIT]
    return a if ahead else b
