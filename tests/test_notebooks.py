"""The notebooks are run as a reader would run them, and say what they say in the repository."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


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
    """What cells end with that is a truth or a word; figures differ a little from machine to machine."""
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
