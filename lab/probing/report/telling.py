"""How an effect is told: the same number in the sentences, in the drawing and on its arrows."""

import numpy as np

from lab.probing.measured import Measured, signed_max_over_directions


def percent(share: float, space: str = " ") -> str:
    """A share as whole per cent; never "-0 %".

    >>> percent(0.472), percent(-0.004), percent(0.5, space="")
    ('47 %', '0 %', '50%')
    """
    return f"{round(100 * float(share)) if np.isfinite(share) else share}{space}%"


def told(effect: Measured) -> np.ndarray:
    """The effect that is told of each component or path: that of the direction in which it is larger, of
    those directions whose interval excludes 0; 0 if there is none. The first axis is the direction."""
    clear = (effect.low > 0) | (effect.high < 0)
    return signed_max_over_directions(np.where(clear, effect.value, 0.0))


def told_direction(effect: Measured) -> str:
    """The direction in which a single effect is told; the one in which it is larger if none is clear."""
    clear = (effect.low > 0) | (effect.high < 0)
    size = np.abs(np.nan_to_num(np.where(clear | ~clear.any(), effect.value, 0.0)))
    return str(next(iter(effect.axes.values()))[int(size.argmax())])
