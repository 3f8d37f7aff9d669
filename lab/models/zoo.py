"""Trained models that come with the lab: zoo/NAME stands for a folder of checkpoints/zoo, wherever the lab is started.

A folder of the zoo holds a model and its card, README.md, whose first line says what the model can do.
"""

from pathlib import Path

from lab.errors import ModelError

PREFIX = "zoo/"
_PLACES = (Path(__file__).parents[1] / "zoo", Path(__file__).parents[2] / "checkpoints" / "zoo")
"""In the wheel, and in a checkout."""


def models() -> dict[str, Path]:
    """The folders of the zoo by the names that open them."""
    folder = next((place for place in _PLACES if place.is_dir()), _PLACES[-1])
    return {f"{PREFIX}{card.parent.name}": card.parent for card in sorted(folder.glob("*/README.md"))}


def resolve(name: str) -> str:
    """The folder that a name of the zoo stands for; other names stay as they are.

    Raises ModelError if the name begins with zoo/ and neither the zoo nor the current folder has it.
    """
    if not name.startswith(PREFIX) or Path(name).exists():
        return name
    found = models()
    if name not in found:
        raise ModelError(f"{name}: the zoo has {', '.join(found) or 'no models'}")
    return str(found[name])


def about(folder: Path) -> str:
    """The first line of a model's card."""
    return (folder / "README.md").read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
