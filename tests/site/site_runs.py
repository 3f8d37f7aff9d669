"""Run directories written by hand for a site to show, with hostile and very long answers."""

import json
from pathlib import Path
from typing import Any

from lab.numbers.statistics import wilson

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'> "
    "\x00\x1b[31m ‮drawkcab‬ \ud800 ]]> <!-- ${alert(1)} \u2028 end"
)
LONG = "7" * 1_000_000 + "!"


def estimate(right: int, n: int) -> dict[str, float]:
    return wilson(right, n)._asdict()


def nupa_part(right: int, n: int, span: tuple[int, int]) -> dict[str, Any]:
    share = estimate(right, n)
    reading = {"exact_match": share, "digit_match": share, "dlength": {"value": 0.5, "low": 0.1, "high": 1.5, "n": n}}
    return {"lengths": list(span), "asked": n, "api_errors": 0, "strict": reading, "loose": reading}


def nupa_sample(index: int, given: str | None, answer: str, text: str, length: int = 3, **more: Any) -> dict[str, Any]:
    read = {"given": given, "exact_match": given == answer, "digit_match": 0.5, "dlength": 0, "error": None}
    question = {"a": "1", "b": "2", "prompt": f"question {index}", "seconds": 0.1, "finish_reason": "stop"}
    asked = {"index": index, "task": "add", "representation": "integer", "answer": answer, "length": length}
    return {**asked, **question, "text": text, "api_error": "", "strict": read, "loose": read, **more}


def write_run(folder: Path, name: str, config: str, status: str = "finished", **files: Any) -> Path:
    """A run directory; a list is written as records, anything else as JSON."""
    run = folder / name
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(f"name: {name}\n{config}", encoding="utf-8")
    (run / "status").write_text(f"{status}\n")
    (run / "command.txt").write_text("python -m lab.something\n")
    for file, value in files.items():
        if isinstance(value, list):
            (run / f"{file}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in value))
        else:
            (run / f"{file}.json").write_text(json.dumps(value))
    return run


NUPA = "engine: {kind: local, model: {name: toy}}\nbenchmark: {kind: nupa}\n"
SCRATCH = "model: {size: 0.2M, encoding: rope}\ntokenizer: {kind: aligned}\nformat: {}\ndata: {lengths: [1, 4]}\n"
