"""What comes with the lab besides its code: in lab/ in a wheel, beside lab/ in a checkout."""

from pathlib import Path

_LAB = Path(__file__).parent


def _folder(wheel: str, checkout: str) -> Path:
    packed = _LAB / wheel
    return packed if packed.is_dir() else _LAB.parent / checkout


CONFIGS = _folder("configs", "configs")
ZOO = _folder("zoo", "checkpoints/zoo")


def shipped_configs() -> dict[str, Path]:
    """The configs that come with the lab, by name."""
    files = [*sorted(CONFIGS.glob("*.yaml")), *sorted(CONFIGS.glob("sweeps/*.yaml"))]
    return {str(file.relative_to(CONFIGS).with_suffix("")): file for file in files}
