"""The tutorials, and the sessions in Python of README and `lab`, run as a reader would type them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
FENCE = re.compile(r'^```(\w*)(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Block(NamedTuple):
    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(*found) for found in FENCE.findall((TUTORIALS / page).read_text(encoding="utf-8"))]


def told(page: str) -> list[tuple[Block, str]]:
    """Each block that is run, with what it prints according to the page; "" if the page says nothing."""
    found = blocks(page)
    return [
        (block, after.text if after and after.language == "text" else "")
        for block, after in zip(found, [*found[1:], None], strict=True)
        if block.language in ("python", "bash") and not block.title
    ]


class Reader:
    """Somebody who follows a tutorial in a folder, with the lab of `house`."""

    def __init__(self, folder: Path, house: Path = ROOT) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": f"{house}{os.pathsep}{folder}", "OPENAI_API_KEY": "none"}

    def run(self, block: Block) -> str:
        """What the block prints. If it fails, so does the test, with the end of its stderr."""
        if block.language == "python":
            return self._command([sys.executable, "-c", block.text])
        return "".join(self._line(line) for line in block.text.splitlines())

    def _line(self, line: str) -> str:
        words = shlex.split(line)
        if words[0] == "export" or words[-1] == "&":
            return ""
        if words[0] == "lab":
            words[:1] = [sys.executable, "-m", "lab.command"]
        return self._command(words)

    def _command(self, words: list[str]) -> str:
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    @contextmanager
    def server(self, file: str) -> Iterator[None]:
        process = subprocess.Popen([sys.executable, file], cwd=self.folder, env=self.environment)
        try:
            time.sleep(1)
            assert process.poll() is None
            yield
        finally:
            process.kill()
            process.wait()


def check(printed: str, page: str) -> None:
    """The last lines that were printed are those of the page; figures may differ by rounding."""
    expected = page.rstrip().splitlines()
    lines = printed.rstrip().splitlines()[-len(expected) :] if expected else []
    assert [NUMBER.sub("#", line).split() for line in lines] == [NUMBER.sub("#", line).split() for line in expected]
    both = zip(NUMBER.findall("\n".join(lines)), NUMBER.findall("\n".join(expected)), strict=True)
    assert [(now, then) for now, then in both if abs(float(now) - float(then)) > (0.02 if "." in then else 1)] == []


def test_every_tutorial_is_followed_by_a_test():
    assert {page.stem for page in TUTORIALS.glob("*.md")} == {
        "add-a-probe",
        "add-a-task",
        "evaluate-an-endpoint",
        "tune-and-look",
    }


@pytest.mark.slow
@pytest.mark.parametrize("where", ["README.md", "lab/__init__.py"])
def test_the_session_in_python_can_be_typed_as_it_stands(tmp_path, where):
    text = (ROOT / where).read_text(encoding="utf-8")
    [session] = re.findall(r"^import lab\n.*?(?=^```|^\"\"\")", text, re.MULTILINE | re.DOTALL)
    told = Reader(tmp_path).run(Block("python", "", f"{session}\nprint(model.ask('12 + 34'), result)"))
    assert re.match(r"46 zoo/adds-4-digits: 100 problems\n  add_integer, 4 digits: 100 % right", told)


@pytest.mark.slow
def test_add_a_probe(tmp_path):
    probe = next(block for block in blocks("add-a-probe.md") if block.title == "resting.py")
    (tmp_path / probe.title).write_text(probe.text)
    for block, page in told("add-a-probe.md"):
        check(Reader(tmp_path).run(block), page)


@pytest.mark.slow
def test_a_probe_that_is_kept_is_an_instrument_of_the_command(tmp_path):
    probe, line = (block for block in blocks("add-a-probe.md") if block.title)
    house = house_in(tmp_path)
    (house / "lab" / "probing" / "addition" / probe.title).write_text(probe.text)
    after(house / line.title, "INSTRUMENTS: Mapping[str, Callable[[Session], list[Measured]]] = {\n", line.text)
    after(
        house / line.title,
        "from lab.probing.addition.positions import Sums\n",
        "from lab.probing.addition.resting import resting\n",
    )
    with (house / "lab/probing/addition/instruments.yaml").open("a") as file:
        file.write("resting: Heads that rest.\n")
    command = "lab probe probe_scratch name=rest subject=zoo/adds-4-digits 'instruments=[resting]' sums.per_length=8"
    Reader(tmp_path, house).run(Block("bash", "", command))
    assert "attention to the first token" in (tmp_path / "checkpoints" / "rest" / "tables.md").read_text()


@pytest.mark.slow
def test_add_a_task(tmp_path):
    function, row, line = (block for block in blocks("add-a-task.md") if block.title)
    house = house_in(tmp_path)
    with (house / function.title).open("a") as file:
        file.write(f"\n\nimport math\n\n\n{function.text}")
    after(house / row.title, "_ROWS = (\n", row.text)
    after(house / line.title, "INSTRUCTIONS = {\n", line.text)
    for block, page in told("add-a-task.md"):
        check(Reader(tmp_path, house).run(block), page)


@pytest.mark.slow
def test_evaluate_an_endpoint(tmp_path):
    server = next(block for block in blocks("evaluate-an-endpoint.md") if block.title)
    (tmp_path / server.title).write_text(server.text)
    reader = Reader(tmp_path)
    with reader.server(server.title):
        for block, page in told("evaluate-an-endpoint.md"):
            check(reader.run(block), page)


@pytest.mark.slow
def test_tune_a_model_and_look_at_it(tmp_path, toy_model):
    """With a random model of two layers instead of SmolLM2, so that it takes seconds; it prints other figures."""
    reader = Reader(tmp_path)
    small = ["training.max_steps=2", "evaluation.problems_per_range=2", "training.valid_problems=2"]
    for block, _ in told("tune-and-look.md"):
        text = block.text.replace("lab finetune smollm2_lora", f"lab finetune smollm2_lora model.name={toy_model}")
        text = re.sub(r"training\.max_steps=\d+", " ".join(small), text)
        reader.run(Block(block.language, "", text))
    assert (tmp_path / "report" / "index.html").is_file()


def house_in(folder: Path) -> Path:
    """A copy of the lab that a tutorial may change."""
    house = folder / "house"
    shutil.copytree(ROOT / "lab", house / "lab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "configs", house / "configs")
    shutil.copytree(ROOT / "checkpoints" / "zoo", house / "checkpoints" / "zoo")
    return house


def after(file: Path, mark: str, text: str) -> None:
    """Writes `text` after `mark`, which stands there once."""
    before = file.read_text()
    assert before.count(mark) == 1, f"{file}: {mark}"
    file.write_text(before.replace(mark, mark + text))
