"""Tells whether the weights of a folder are whole, before a library reads them. Does not import torch."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from lab.errors import ModelError, in_one_line

AGAIN = "copy it again, or export or train the model again"
"""What to do about a damaged file."""


def check_whole(folder: Path, advice: str = AGAIN) -> None:
    """Raises ModelError, in one line that names the file, if weights in `folder` are damaged or cut off.

    A safetensors file begins with the sizes of its weights, so one that was cut off is found without reading it.

    Args:
        folder: may be any folder, or none.
        advice: what to do about the file.
    """
    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, "np"):
                pass
        except (SafetensorError, OSError) as error:
            what = f"it is damaged or incomplete ({in_one_line(error)})"
            raise ModelError(f"{file} cannot be loaded: {what}; {advice}") from None
