"""Pages and figures from outside docs/ that pages link to: the site has them at their path in the repository.

So a link such as ../experiments/leak/figure.png is right in the repository and on the site. A hook of MkDocs
(mkdocs.yml). What is linked is followed: a Markdown file or a notebook becomes a page, with all that it links to.
"""

import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))  # hooks are read as files, not as modules of a package

from notebooks import as_markdown

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(\]\()([^)#:\s]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    waiting = [
        path for file in files.documentation_pages() for path in linked(f"docs/{file.src_uri}", file.content_string)
    ]
    while waiting:
        path = waiting.pop()
        if path.startswith("docs/") or files.get_file_from_path(place_on_site(path)):
            continue
        if path.endswith(".ipynb"):
            page = as_markdown(ROOT / path)
            files.append(File.generated(config, place_on_site(path), content=page))
            waiting += linked(path, page)
            continue
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
        if path.endswith(".md"):
            waiting += linked(path, (ROOT / path).read_text(encoding="utf-8"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return rewritten(markdown, in_repository(page.file.src_uri), lambda path: link_to(path, page.file.src_uri))


def linked(page: str, markdown: str) -> Iterator[str]:
    """Files of the repository that a page there links to; a link to a folder is one to its README.md."""
    for found in _LINK.finditer(markdown):
        if path := target(page, found[2]):
            yield path


def rewritten(markdown: str, page: str, link: Callable[[str], str]) -> str:
    """The page with `link` of each file that it links to; links to what is not there stay, for MkDocs to refuse."""

    def replaced(found: re.Match[str]) -> str:
        path = target(page, found[2])
        return found[1] + (link(path) if path else found[2])

    return _LINK.sub(replaced, markdown)


def target(page: str, link: str) -> str | None:
    """The file that a page links to, as its path in the repository; None if there is no such file."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    file = ROOT / path
    if file.is_dir():
        path, file = f"{path}/README.md", file / "README.md"
    return path if not path.startswith("..") and file.is_file() else None


def in_repository(page: str) -> str:
    """Where a page of the site is in the repository."""
    return f"docs/{page}" if (ROOT / "docs" / page).exists() else page


def link_to(path: str, page: str) -> str:
    """The link from a page of the site to a file of the repository."""
    return posixpath.relpath(place_on_site(path).removeprefix("docs/"), posixpath.dirname(page) or ".")


def place_on_site(path: str) -> str:
    """Where the site has a file of the repository: a notebook is a page there."""
    return f"{path.removesuffix('.ipynb')}.md" if path.endswith(".ipynb") else path
