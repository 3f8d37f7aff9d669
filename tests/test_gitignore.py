import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
@pytest.mark.parametrize(
    "left",
    [
        "tests/adders/some.verdict.json",
        "tests/adders/.some.verdict.json.new",  # of a process that was killed
        "nupa/test.json",  # --export as the README has it
        "leaderboard/leaderboard.md",
        "checkpoints/run/metrics.jsonl",
    ],
)
def test_what_commands_leave_behind_is_not_offered_for_a_commit(left):
    assert subprocess.run(["git", "check-ignore", "--quiet", left], cwd=ROOT, check=False).returncode == 0
