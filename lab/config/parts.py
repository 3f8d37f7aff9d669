"""The section `parts` of a config: which parts a model has, by their kinds. Does not import torch itself; the module of
a part, which does, is imported as soon as a config names the part.

    parts:
      coupled: {words: nearest}
      walk: {heads: 3, layers: [21, 28]}
"""

import importlib
import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, GetJsonSchemaHandler, SerializeAsAny, ValidationError
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from lab.config.describing import did_you_mean
from lab.config.schema import Section

MODULES = {
    kind: f"lab.parts.{kind}"
    for kind in (
        *("abacus_ids", "alibi", "clipped_distances", "countdown_ids", "coupled", "coupled_ids", "even_spacing"),
        *("far_digits", "fire", "grid_ids", "learned_ids", "locality", "nope", "place_embeddings", "relative_keys"),
        *("same_place", "segments", "stick_breaking", "walk", "window"),
    )
}
"""The modules of the parts that come with the lab, by their kinds."""


def _in_order(layers: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= layers[0] <= layers[1]:
        raise ValueError("should be [first, last], from layer 0 up")
    return layers


LayerRange: TypeAlias = Annotated[tuple[int, int], AfterValidator(_in_order)]
"""The first and the last layer that a part is in."""


class PartConfig(Section):
    """The section of a part. A subclass names its kind: `class WalkConfig(PartConfig, kind="walk")`."""

    KIND: ClassVar[str]
    KINDS: ClassVar[dict[str, "type[PartConfig]"]] = {}
    """The sections of all parts whose modules were imported, by their kinds."""
    LATER: ClassVar[tuple[str, ...]] = ()
    """The keys that may change after training."""
    BEGINS: ClassVar[bool] = False
    """Whether every text needs a first token that is no digit."""
    FROM_SCRATCH: ClassVar[bool] = True
    """Whether models from scratch can have the part."""
    PRETRAINED: ClassVar[bool] = True
    """Whether pretrained models can have the part."""
    DECIDES: ClassVar[bool] = False
    """Whether the part decides position ids. At most one part of a model does."""
    DIRECTIONS: ClassVar[int] = 1
    """In how many directions these ids count."""
    ONES_FIRST: ClassVar[bool] = False
    """Whether the lowest of these ids are at the ones digits of all numbers."""
    ROTATES: ClassVar[bool] = True
    """Whether queries and keys are still rotated by their ids."""

    def __init_subclass__(cls, kind: str | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if kind is not None:
            cls.KIND = kind
            PartConfig.KINDS[kind] = cls

    def check(self, run: Any) -> None:
        """Raises ValueError if the part does not go with the rest of a run's config, which has the sections parts,
        format, tokenizer and data. The message names keys, so that the error is reported where one of them was set."""

    def caveat(self, adds: bool) -> str:
        """What a model with the part cannot do, in a sentence; `adds`: whether it was tuned on sums alone."""
        return ""

    def build(self, model: Any, others: "Parts") -> Any:
        """The part (`lab.parts.part.Part`) for a model.

        Args:
            model: the config of the model (LlamaConfig).
            others: all parts of the model.

        Raises ModelError if the part does not fit the model.
        """
        raise NotImplementedError


def section_of(kind: str) -> type[PartConfig]:
    """The section of a kind of part. Raises KeyError if there is no such kind."""
    if kind not in PartConfig.KINDS:
        importlib.import_module(MODULES[kind])
    return PartConfig.KINDS[kind]


def kinds() -> list[str]:
    """All kinds of parts: those of the lab, and those of imported modules."""
    return sorted({*MODULES, *PartConfig.KINDS})


def import_modules(modules: list[str]) -> list[str]:
    """Imports modules, which register parts, and returns their names. Raises ValueError if there is no such module."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            _import_from_here(name)
    return modules


def _import_from_here(name: str) -> None:
    """Imports a module from the folder in which the command was started."""
    sys.path.insert(0, "")
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ValueError(f"{error}; should be a module that is installed, or in the folder where you start") from None
    finally:
        sys.path.remove("")


Uses: TypeAlias = Annotated[list[str], AfterValidator(import_modules)]
"""Modules that are imported because they register parts."""


def _read(given: Any) -> Any:
    """The sections of parts from a mapping of kinds to keys; a part that is null is left out."""
    if not isinstance(given, Mapping):
        return given
    sections: dict[str, PartConfig] = {}
    errors: list[InitErrorDetails] = []
    for kind, keys in given.items():
        if isinstance(keys, PartConfig):
            sections[kind] = keys
        elif keys is not None:
            try:
                sections[kind] = section_of(kind).model_validate_json(json.dumps(keys), strict=True)
            except KeyError:
                what = f"no such part{did_you_mean(kind, kinds()) or '.'} Parts here: {', '.join(kinds())}"
                errors.append(
                    {"type": PydanticCustomError("part", "{what}", {"what": what}), "loc": (kind,), "input": keys}
                )
            except ValidationError as error:
                errors += [_below(kind, one) for one in error.errors(include_url=False)]
    if errors:
        raise ValidationError.from_exception_data("parts", errors)
    return sections


def _below(kind: str, error: Any) -> InitErrorDetails:
    """An error of a part's section, as an error of the section `parts`."""
    context = error.get("ctx", {})
    known = error["type"] != "together"
    type_ = error["type"] if known else PydanticCustomError("together", "{allowed}", context)
    return {"type": type_, "loc": (kind, *error["loc"]), "input": error["input"], "ctx": context if known else {}}


def check_parts(run: Any) -> None:
    """Raises ValueError if a part of a run's config does not go with the rest of it."""
    scratch = run.COMMAND == "pretrain"
    for kind, part in run.parts.items():
        if not (part.FROM_SCRATCH if scratch else part.PRETRAINED):
            raise ValueError(f"parts.{kind} is not for {'models from scratch' if scratch else 'pretrained models'}")
    if len(deciding := [kind for kind, part in run.parts.items() if part.DECIDES]) > 1:
        raise ValueError(f"parts.{deciding[0]} and parts.{deciding[1]} both decide position ids: leave one of them out")
    for part in run.parts.values():
        part.check(run)


class _Shape:
    """The JSON schema of the section: one key for each kind whose module was imported."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {kind: _whole(section) for kind, section in sorted(PartConfig.KINDS.items())},
            "description": f"The kinds are {', '.join(kinds())}; `lab list parts` shows their keys.",
        }


def _whole(section: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a section without references."""
    shape = section.model_json_schema()
    return {name: part for name, part in shape.items() if name != "$defs"}


Parts: TypeAlias = Annotated[dict[str, SerializeAsAny[PartConfig]], BeforeValidator(_read), _Shape()]
"""The parts of a model, by their kinds."""
