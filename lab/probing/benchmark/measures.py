"""How good a guess at a circuit is.

AUROC         the chance that something of the circuit is scored above something else (ties count half)
false alarms  how many parts outside of the circuit are claimed
missed        how many of its parts are not
"""

import numpy as np

CLAIMED = 0.05
"""Score, as a share of the carry's whole effect, from which on a part is said to belong to the circuit."""


def auroc(scores: np.ndarray, is_in: np.ndarray) -> float:
    """nan where everything is in the circuit, or nothing."""
    inside, outside = scores[is_in], scores[~is_in]
    if not len(inside) or not len(outside):
        return float("nan")
    above = (inside[:, None] > outside).mean() + 0.5 * (inside[:, None] == outside).mean()
    return float(above)


def parts(scores: np.ndarray, is_in: np.ndarray) -> dict[str, float]:
    """AUROC, false alarms and misses, of sizes of scores; those that are the same to a millionth are tied."""
    sizes = np.round(np.abs(np.nan_to_num(scores)), 6)
    claimed = sizes >= CLAIMED
    return {
        "AUROC": auroc(sizes, is_in),
        "false alarms": float((claimed & ~is_in).sum()),
        "missed": float((~claimed & is_in).sum()),
    }
