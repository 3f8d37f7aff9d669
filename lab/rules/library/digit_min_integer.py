"""Takes the smaller digit of each pair, from the left; a missing digit counts as 0."""


def digit_min(a, b):
    size = max(len(a), len(b))
    a, b = a.zfill(size), b.zfill(size)
    result = ""
    while a:
        digit = min(int(a[0]), int(b[0]))
        result = result + str(digit)
        a, b = a[1:], b[1:]
    return result.lstrip("0") or "0"
