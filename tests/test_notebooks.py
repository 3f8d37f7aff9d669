"""The notebooks are run as a reader would run them, and print the sentences, tables and answers that are stored in
them. Their figures may differ a little, and their drawings and formatted tables are not compared."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_prints_the_words_and_nearly_the_figures_that_it_was_stored_with(file, tmp_path):
    stored = nbformat.read(file, as_version=4)
    book = nbformat.read(file, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    before, now = printed(stored), printed(book)
    assert [words(text) for text in now] == [words(text) for text in before]
    assert "False" not in now
    figures = [FIGURE.findall("\n".join(texts)) for texts in (before, now)]
    assert [pair for pair in zip(*figures, strict=True) if not close(*pair)] == []


FIGURE = re.compile(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?![\w.])")
"""A figure in a text, but not a digit of a name such as L0H3."""


def close(stored: str, now: str) -> bool:
    """Whether two figures differ as little as they may from machine to machine: by a tenth, by 1 if they are whole
    numbers, or by 0.05 if they have decimals."""
    return float(now) == pytest.approx(float(stored), rel=0.1, abs=0.05 if "." in stored else 1)


def printed(book: nbformat.NotebookNode) -> list[str]:
    """What the cells print, and their results as text."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", []) if output.get("name") != "stderr"]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]


def words(text: str) -> list[str]:
    """A text without its figures and its spaces."""
    return FIGURE.sub("#", text).split()


def test_other_words_and_names_are_noticed_and_small_differences_of_figures_are_not():
    assert words("L0H3 brings the carry about: 53 %") == words("L0H3  brings the carry about: 54 %")
    assert words("L0H3 brings the carry about: 53 %") != words("L1H3 brings the carry about: 53 %")
    assert words("an illusion") != words("the carry")
    assert close("53", "55")
    assert close("0.14", "0.17")
    assert not close("53", "72")
    assert not close("0.14", "0.34")
    assert FIGURE.findall("L0H3 19% and -0.180 (-0.264 to 0)") == ["19", "-0.180", "-0.264", "0"]


def test_every_code_cell_of_a_notebook_was_run_without_an_error_and_in_order():
    for file in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), file.name
        assert not any(output.output_type == "error" for cell in cells for output in cell.outputs), file.name


def test_the_site_shows_a_notebook_with_its_text_its_code_and_what_it_printed_and_drew(tmp_path):
    spec = importlib.util.spec_from_file_location("site_notebooks", ROOT / "docs" / "notebooks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    book = new_notebook(
        cells=[
            new_markdown_cell("# Title"),
            new_code_cell("1 + 1", outputs=[new_output("execute_result", {"text/plain": "2"})]),
            new_code_cell(
                "draw()", outputs=[new_output("display_data", {"text/plain": "x", "image/svg+xml": "<svg/>"})]
            ),
            new_code_cell("print(3)", outputs=[new_output("stream", text="3\n")]),
        ]
    )
    file = tmp_path / "one.ipynb"
    nbformat.write(book, file)
    assert module.as_markdown(file) == (
        "# Title\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n```python\ndraw()\n```\n\n"
        '<div class="drawing"><svg/></div>\n\n```python\nprint(3)\n```\n\n```text\n3\n```\n\n'
        "This page is a notebook, `notebooks/one.ipynb`."
    )
