"""What the tests of the site share: runs of every kind, findings, and a real Chromium to open the site in."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site.site_runs import HOSTILE, LONG, NUPA, SCRATCH, estimate, nupa_part, nupa_sample, write_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every kind, with what may go wrong in them."""
    folder = tmp_path_factory.mktemp("runs")
    for name, right in (("first", 3), ("second", 30)):
        add = {
            "ranges": {"S": nupa_part(right, 36, (3, 4)), "M": nupa_part(0, 36, (5, 8))},
            "domains": {},
            "lengths": {str(length): nupa_part(right, 36, (length, length)) for length in (3, 4, 10)},
        }
        samples = [
            nupa_sample(0, "108", "105", " 108"),
            nupa_sample(1, "105", "105", " 105", length=4),
            nupa_sample(2, None, "12", HOSTILE),
            nupa_sample(3, "12345", "345", LONG, length=4),
        ]
        samples += [nupa_sample(index, "7", "7", " 7", length=5) for index in range(4, 50)]
        summary = {"version": 1, "nupa": {"add_integer": add, "max_float": add}}
        write_run(folder, name, NUPA, summary=summary, samples=samples)
    triple = {"exact_match": estimate(9, 10), "digit_match": estimate(9, 10), "dlength": estimate(0, 10)}
    curve = [{"step": s, "samples": 64 * s, "task": "add_integer", "length": 4, **triple} for s in (1, 2)]
    metrics = [{"step": s, "loss": 2.0 / s} for s in range(1, 5)] + [{"step": 4, "valid_loss": 0.5}]
    lengths = {"add_integer": {"2": triple, "10": triple}}
    write_run(folder, "scratch", SCRATCH, summary={"version": 1, "lengths": lengths}, metrics=metrics, curve=curve)
    write_run(folder, "unfinished", NUPA, "running", samples=[nupa_sample(0, "1", "1", " 1")])
    write_run(folder, "old", NUPA, summary={"nupa": {}})
    probe = write_run(folder, "probe", "subject: checkpoints/scratch\ninstruments: [alignment]\n")
    (probe / "page.html").write_text("<!doctype html><title>probe</title><h1>Attention</h1>")
    damaged = write_run(folder, "damaged", NUPA, samples=[{"index": 1}, nupa_sample(0, "1", "1", " 1")])
    (damaged / "summary.json").write_text("{")
    (damaged / "metrics.jsonl").write_text("not JSON\n{}\n")
    (damaged / "config.yaml").write_text("[a, list")
    return folder


@pytest.fixture(scope="module")  # beyond the module, its event loop would disturb other tests
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright.chromium)
        yield browser
        browser.close()


HOW = "no Chromium to open the site in: apt-get install chromium, or .venv/bin/playwright install --with-deps chromium"


def launched(kind: Any) -> Any:
    """A browser: the system's own, or else playwright's. Without either, the tests are skipped, but never in CI."""
    from playwright.sync_api import Error

    system = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        return kind.launch(executable_path=system, args=["--no-sandbox"])
    except Error:  # there is none, or it lacks libraries of the system
        if os.environ.get("CI") == "true":
            pytest.fail(HOW)
        pytest.skip(HOW)
