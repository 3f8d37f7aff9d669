"""Reads what earlier versions saved: keys that are gone, and positions as sections of their own instead of parts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_ANY = object()
_IDLE = ("speculation", "engine.speculation", "evaluation.speculation", "training.share_prefixes", "evaluation.erase")
_IDLE += ("training.internalize",)  # which an experiment now does (experiments/internalized/run.py)
_GONE = {
    **dict.fromkeys(_IDLE, _ANY),
    **dict.fromkeys(("engine.far_at_most", "engine.clip_distance", "engine.spacing"), 0),
    "data.rule_shown": False,
    "evaluation.sharpness": 1.0,
    "training.grokfast": None,
    "training.alignment": {"first": [], "second": [], "weight": 0.1},
}
"""Keys that are gone, each with the value at which it changed no answer."""


def current(settings: Any) -> Any:
    """The settings of a saved config, without keys that are gone and that changed nothing."""
    for key, idle in _GONE.items():
        settings = _without(settings, key.split("."), idle)
    return _engine_with_parts(_with_scratch_parts(settings))


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


_EXPERIMENTS = "experiments.parts."
"""Where parts are that one experiment alone uses."""
SCRATCH_WEIGHTS = {
    r"^position_bias\.(?=learned)": "parts.locality.",
    r"^position_bias\.(?!learned)": "parts.fire.",
    r"^position_embeddings\.": "parts.learned_ids.vectors.",
    r"^relative_keys\.": "parts.relative_keys.",
    r"^place_counter\.": "parts.counted_ids.",
    r"^segment_embeddings\.": "parts.segments.vectors.",
}
"""Patterns of the names that weights of models from scratch had, and what replaces them."""


def scratch_parts(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys uses and parts of a model from scratch, from the keys that its section `model` had before there were
    parts. `position_kind` and the keys of `positions` may be among them."""
    given = {**keys, **keys.get("positions", {})}
    kind, encoding = given.get("kind", given.get("position_kind", "plain")), given.get("encoding", "rope")
    largest = {"largest": given.get("largest", 1024)}
    through = {"through_point": True} if given.get("through_point") else {}
    parts: dict[str, Any] = {}
    if kind != "plain":
        parts[f"{kind}_ids"] = {} if kind in ("grid", "counted") else {**largest, **through}
    if given.get("rope_factor", 1) != 1:
        parts["slower_rope"] = {"factor": given["rope_factor"]}
    if encoding in ("alibi", "alibi_released"):
        parts["alibi"] = {"as_released": True} if encoding == "alibi_released" else {}
    if encoding in ("nope", "fire"):
        parts[encoding] = {}
    if given.get("locality", 0) != 0:
        parts["locality"] = {"slope": given["locality"]}
    if given.get("far_copies", 1) > 1:
        parts["far_copies"] = {"copies": given["far_copies"]}
    if given.get("far_at_most"):
        parts["far_digits"] = {"at_most": given["far_at_most"]}
    if given.get("window"):
        parts["window"] = {"reach": given["window"]}
    if encoding == "learned":
        parts["learned_ids"] = largest if kind in ("plain", "grid", "counted") else {}
    if encoding == "relative":
        parts["relative_keys"] = {}
    if given.get("clip_distance"):
        parts["clipped_distances"] = {"at": given["clip_distance"]}
    if given.get("stick_breaking"):
        parts["stick_breaking"] = {"heads": given["stick_breaking"], "downward": given.get("downward", 0)}
    if given.get("segments"):
        parts["segments"] = {}
    own = ("counted_ids", "slower_rope", "far_copies")
    return {"uses": [_EXPERIMENTS + name for name in own if name in parts], "parts": parts}


SCRATCH_KEYS = ("encoding", "locality", "window", "far_copies", "far_at_most", "clip_distance", "rope_factor")
SCRATCH_KEYS += ("stick_breaking", "downward", "positions")
"""The keys of the section `model` that became parts."""


def _with_scratch_parts(settings: Any) -> Any:
    model = settings.get("model") if isinstance(settings, Mapping) else None
    if not isinstance(model, Mapping) or "encoding" not in model:
        return settings
    kept = {key: value for key, value in model.items() if key not in SCRATCH_KEYS}
    return {**settings, "model": kept, **scratch_parts(model)}


def _engine_with_parts(settings: Any) -> Any:
    """Settings of an evaluation that bounded far digits, clipped distances or spaced numbers evenly."""
    engine = settings.get("engine") if isinstance(settings, Mapping) else None
    changed = {"clip_distance": ("clipped_distances", "at"), "spacing": ("even_spacing", "distance")}
    changed["far_at_most"] = ("far_digits", "at_most")
    if not isinstance(engine, Mapping) or not changed.keys() & engine.keys():
        return settings
    parts = {part: {key: engine[old]} for old, (part, key) in changed.items() if old in engine}
    return {
        **settings,
        "engine": {**{key: value for key, value in engine.items() if key not in changed}, "parts": parts},
    }
