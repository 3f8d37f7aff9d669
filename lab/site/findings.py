"""The findings: folders of experiments/, each with a page whose front matter says what was found, and on what.

experiments/<slug>/README.md      front matter between two lines of ---, then the page
experiments/<slug>/results.csv    what was measured; figure.svg is drawn from it
"""

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import yaml
from pydantic import AfterValidator, Field, ValidationError

from lab.config.schema import Section
from lab.errors import RunError, mistakes

_PAGE = re.compile(r"\A---\n(.*?\n)---\n(.*)\Z", re.DOTALL)
_SLOT = re.compile(r"<!--.*?-->")
"""The marks around the numbers that are computed from the data (experiments/rendering/)."""

Group = Literal["length", "pretrained", "circuits", "tokens and formats", "rules", "adders", "speed"]
GROUPS: tuple[Group, ...] = get_args(Group)

LONGEST_CLAIM = 25
"""The maximum number of words in a claim."""


def _short(claim: str) -> str:
    if len(claim.split()) > LONGEST_CLAIM:
        raise ValueError(f"should have at most {LONGEST_CLAIM} words")
    return claim


class Finding(Section):
    """The front matter of a finding."""

    id: Annotated[str, Field(pattern=r"^F-\d{3}$")]
    """The name by which the finding is cited. It never changes."""
    claim: Annotated[str, AfterValidator(_short)]
    status: Literal["holds", "negative", "open", "superseded"]
    """negative: the expected effect did not occur. open: the evidence does not decide the question."""
    group: Group
    models: list[str]
    seeds: Annotated[int, Field(ge=0)]
    """The number of trained models that the headline is based on; 0 if nothing was trained."""
    n: str
    """What was counted, and how many."""
    device: str
    date: date
    commands: Annotated[list[str], Field(min_length=1)]
    artefacts: list[str] = Field(default_factory=list)
    """Files outside the page's folder that contain or produce the evidence, relative to the root of the repository."""
    headline: str
    """The key figure."""


class Page(NamedTuple):
    """The page of a finding."""

    path: Path
    finding: Finding
    body: str
    """Markdown below the front matter."""


def read(path: Path) -> Page:
    """The page at `path`. Raises `RunError` with a line for each problem if its front matter cannot be used."""
    try:
        parts = _PAGE.match(_SLOT.sub("", path.read_text(encoding="utf-8")))
        if not parts:
            raise RunError(f"{path}: should begin with front matter between two lines of ---")
        return Page(path, Finding.model_validate(yaml.safe_load(parts[1])), parts[2])
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RunError(f"{path}: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise RunError("\n".join(f"{path}: {line}" for line in mistakes(error))) from None


def findings(folder: Path) -> list[Page]:
    """The findings below `folder`, sorted by group and id. Raises `RunError` as `read` does."""
    pages = [read(path) for path in folder.glob("*/README.md") if _is_finding(path)]
    return sorted(pages, key=lambda page: (GROUPS.index(page.finding.group), page.finding.id))


def _is_finding(page: Path) -> bool:
    """Whether a page has front matter; other folders are no findings yet."""
    return page.read_text(encoding="utf-8", errors="replace").startswith("---\n")
