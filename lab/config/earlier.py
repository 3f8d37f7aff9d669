"""Reads what earlier versions saved: keys that are gone, and positions of a pretrained model as one section instead of
parts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_ANY = object()
_IDLE = ("speculation", "engine.speculation", "evaluation.speculation", "training.share_prefixes", "evaluation.erase")
_IDLE += ("training.internalize",)  # which an experiment now does (experiments/internalize.py)
_GONE = {
    **dict.fromkeys(_IDLE, _ANY),
    "data.rule_shown": False,
    "evaluation.sharpness": 1.0,
    "training.alignment": {"first": [], "second": [], "weight": 0.1},
}
"""Keys that are gone, each with the value at which it changed no answer."""


def current(settings: Any) -> Any:
    """The settings of a saved config, without keys that are gone and that changed nothing."""
    for key, idle in _GONE.items():
        settings = _without(settings, key.split("."), idle)
    return settings


def _without(settings: Any, key: Sequence[str], idle: Any) -> Any:
    if not isinstance(settings, Mapping) or key[0] not in settings:
        return settings
    if key[1:]:
        return {**settings, key[0]: _without(settings[key[0]], key[1:], idle)}
    changed = idle is not _ANY and settings[key[0]] != idle
    return settings if changed else {name: value for name, value in settings.items() if name != key[0]}


def with_parts(given: Any) -> Any:
    """A mapping with `positions`, as swap.json had it, as one with `parts`; anything else is returned as it is."""
    if not isinstance(given, Mapping) or "positions" not in given:
        return given
    others = {key: value for key, value in given.items() if key != "positions"}
    return {**others, "parts": _parts(given["positions"])}


def _parts(positions: Mapping[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if positions.get("kind") in ("nope", "alibi"):
        parts[positions["kind"]] = {}
    if positions.get("kind") == "coupled":
        locality = dict(positions.get("locality", {}))
        walk, spacing = locality.pop("walk", {}), locality.pop("spacing", 0)
        parts["coupled"] = locality
        if walk.get("heads"):
            parts["walk"] = walk
        if spacing:
            parts["even_spacing"] = {"distance": spacing}
    if positions.get("same_place"):
        parts["same_place"] = {}
    if positions.get("places"):
        parts["place_embeddings"] = {"places": positions["places"]}
    return parts


def renamed(parts: Iterable[str]) -> dict[str, str]:
    """The modules of a model with these parts, by the names that they had in saved adapters."""
    biased = "coupled" if "coupled" in parts else "same_place"
    names = {"same_place": biased, "walk_bias": "walk", "place_embeddings": "place_embeddings"}
    return {old: f"parts.{kind}" for old, kind in names.items()}
