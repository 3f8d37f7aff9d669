"""The tests of the site need a browser. Where there is none, they are skipped in one line; in CI they fail."""

from typing import Any

import pytest
from playwright.sync_api import Error

from tests.site.conftest import HOW, launched


class Kind:
    """A kind of browser of which none is installed, or only one at a path."""

    def __init__(self, installed: str | None = None) -> None:
        self.installed = installed

    def launch(self, executable_path: str | None, args: list[str]) -> Any:
        if executable_path != self.installed or executable_path is None:
            raise Error("Executable doesn't exist")
        return executable_path


@pytest.fixture(autouse=True)
def no_system_browser(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


def test_without_a_browser_the_tests_are_skipped_with_the_command_that_gets_one():
    with pytest.raises(pytest.skip.Exception, match="playwright install --with-deps chromium"):
        launched(Kind())
    assert "\n" not in HOW


def test_ci_refuses_to_skip_them(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium"):
        launched(Kind())


def test_the_browser_of_the_system_comes_first(tmp_path):
    program = tmp_path / "chromium"
    program.touch(mode=0o755)
    assert launched(Kind(str(program))) == str(program)
