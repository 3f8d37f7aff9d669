"""The page "All modules": every module of the lab with the first sentence of its docstring, room by room.

A hook of MkDocs (mkdocs.yml), so that the page is made with the site and cannot fall behind the code.
"""

import ast
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

LAB = Path(__file__).parents[1] / "lab"
OPENING = """# All modules

A room is a folder of `lab/`. Imports only point down: `make lint` holds it. Each line is a module's own first sentence.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    files.append(File.generated(config, "house.md", content=house()))
    return files


def house() -> str:
    """The whole page. The commands and what all rooms use, the files of `lab/` itself, come first."""
    rooms = [LAB, *sorted(folder for folder in LAB.rglob("*") if folder.is_dir() and list(folder.glob("*.py")))]
    return "\n".join([OPENING, *map(room, rooms)])


def room(folder: Path) -> str:
    """A heading with what the room's `__init__.py` says of it, and a row for each module."""
    name = folder.relative_to(LAB.parent).as_posix()
    modules = [file for file in sorted(folder.glob("*.py")) if file.name != "__init__.py"]
    rows = [f"| `{file.name}` | {first_sentence(file)} |" for file in modules]
    opening = first_sentence(folder / "__init__.py")
    return "\n".join([f"## {name}/", "", opening, "", "| module | what it is |", "|---|---|", *rows, ""])


def first_sentence(file: Path) -> str:
    """Of the module's docstring; nothing if there is none."""
    if not file.exists():
        return ""
    paragraph = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
    sentence = " ".join(paragraph.split()).split(". ")[0].rstrip(".:")
    return sentence.replace("|", r"\|").replace("<", "&lt;")
