"""The lab as a wheel, outside any clone: it brings its configs and its zoo, and its command starts in any folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(pip, check=True, timeout=300)
    [wheel] = folder.glob("number_lab-*.whl")
    assert wheel.stat().st_size < 15e6
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def lab(installed: Path, folder: Path, *words: str) -> str:
    """What a command prints that is started in `folder` with the unpacked lab."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-m", "lab.command", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_a_wheel_finds_its_configs_and_its_zoo_from_an_empty_folder(installed, tmp_path):
    resolved = yaml.safe_load(lab(installed, tmp_path, "finetune", "smollm2_lora", "smoke=true", "--dry-run"))
    assert resolved["name"] == "smollm2_lora_smoke"
    assert resolved["training"]["max_steps"] == 2
    assert "sweeps/positions" in lab(installed, tmp_path, "list", "configs")
    assert "46 (right)" in lab(installed, tmp_path, "ask", "zoo/adds-4-digits", "12 + 34")
    assert "46 (right)" in lab(installed, tmp_path, "ask", "zoo/answers-after-traces", "12 + 34")  # with configs/rules
    assert not list(tmp_path.iterdir())
