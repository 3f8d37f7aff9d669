"""The notebooks are run as a reader would run them, and give the results that are stored in them."""

import importlib.util
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
def test_a_notebook_runs_and_its_answers_are_those_that_it_was_stored_with(file, tmp_path):
    stored = nbformat.read(file, as_version=4)
    book = nbformat.read(file, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    answers = [plain_answers(one) for one in (stored, book)]
    assert answers[0] == answers[1]
    assert "False" not in answers[0]


def plain_answers(book: nbformat.NotebookNode) -> list[str]:
    """The results of cells that are True, False or a text; figures differ a little from machine to machine."""
    texts = [
        output.data.get("text/plain", "")
        for cell in book.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    return [text for text in texts if text in ("True", "False") or text.startswith("'")]


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
