"""How well scores find a circuit.

AUROC         the probability that a part of the circuit has a higher score than another part (ties count half)
false alarms  how many parts outside of the circuit are claimed
missed        how many parts of the circuit are not claimed
"""

import numpy as np

CLAIMED = 0.05
"""A part with at least this score, as a share of the carry's whole effect, is claimed to belong to the circuit."""


def auroc(scores: np.ndarray, is_in: np.ndarray) -> float:
    """The AUROC of scores; nan if everything is in the circuit, or nothing."""
    inside, outside = scores[is_in], scores[~is_in]
    if not len(inside) or not len(outside):
        return float("nan")
    above = (inside[:, None] > outside).mean() + 0.5 * (inside[:, None] == outside).mean()
    return float(above)


def parts(scores: np.ndarray, is_in: np.ndarray) -> dict[str, float]:
    """AUROC, false alarms and misses of absolute scores. Scores that agree to a millionth are ties."""
    sizes = np.round(np.abs(np.nan_to_num(scores)), 6)
    claimed = sizes >= CLAIMED
    return {
        "AUROC": auroc(sizes, is_in),
        "false alarms": float((claimed & ~is_in).sum()),
        "missed": float((~claimed & is_in).sum()),
    }
