"""What cannot work is told in one line, with status 2, before torch is imported: a model takes seconds to load, and a
long job may take hours to reach its mistake. A part imports torch, since its section stands beside what it does; no
library that takes longer is imported.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = """
import contextlib, importlib, io, json, sys
sys.modules.update(transformers=None, trackio=None)
for module, arguments in sorted(json.load(sys.stdin), key=lambda case: "parts." in str(case)):
    if "parts." not in str(arguments):
        sys.modules["torch"] = None
    elif sys.modules.get("torch", 0) is None:
        del sys.modules["torch"]
    error, status = io.StringIO(), 0
    with contextlib.redirect_stderr(error):
        try:
            importlib.import_module(module).main(arguments)
        except SystemExit as stopped:
            status = stopped.code
        except ImportError as late:
            print(f"too late: {late}", file=sys.stderr)
    print(json.dumps([status, error.getvalue()]))
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """The exit status and stderr of each case, all of them in one process."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "file").touch()
    (folder / "almost").mkdir()
    for name in ("latin.py", "latin.jsonl"):
        (folder / name).write_bytes("# é".encode("latin-1"))
    for name, samples in (("other", ""), ("damaged", "{\n{}\n")):
        _run_directory(folder / name, samples)
    cases = {name: (f"lab.{command}", _arguments(command, folder, more)) for name, (command, more, _) in CASES.items()}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        input=json.dumps(list(cases.values())),
        capture_output=True,
        text=True,
        check=True,
    )
    order = sorted(cases, key=lambda name: "parts." in str(cases[name]))
    return dict(zip(order, map(json.loads, done.stdout.splitlines()), strict=True))


def _run_directory(path: Path, samples: str) -> None:
    from lab.config.loading import dump, load
    from lab.config.pretraining import PretrainConfig

    path.mkdir()
    config = load(PretrainConfig, ROOT / "configs" / "scratch_add.yaml", [f"name={path.name}", f"output={path.parent}"])
    for name, text in (("config.yaml", dump(config)), ("status", "finished\n"), ("samples.jsonl", samples)):
        (path / name).write_text(text)


CONFIGS = {
    "pretrain": "scratch_add",
    "finetune": "smollm2_lora",
    "evaluate": "nupa_smollm2",
    "cost": "cot_vs_direct",
    "probe": "probe_scratch",
}
CASES = {
    "infinite rate": ("pretrain", ["training.learning_rate=.inf"], "training.learning_rate = Infinity: should be"),
    "absurd rate": ("pretrain", ["training.learning_rate=1e38"], "should be less than or equal to 10"),
    "infinite decay": ("finetune", ["training.weight_decay=.inf"], "should be a finite number"),
    "long numbers": ("pretrain", ["data.lengths=[1,100000]"], "from 1 digit to 1000"),
    "long sums": ("probe", ["sums.lengths=[5000]"], "from 1 to 1000"),
    "huge rank": ("finetune", ["adapter.rank=100000000"], "less than or equal to 16384"),
    "odd validations": ("finetune", ["training.evaluate_every=3"], "argument 'training.evaluate_every=3': tr"),
    "odd records": ("finetune", ["training.log_every=7"], "argument 'training.log_every=7': training.log_every: "),
    "untested lengths": (
        "cost",
        ["tasks=[add_integer]", "lengths={hard: [1, 2]}"],
        "lengths = {hard: [1, 2], easy: [5, 6]} holds no length at which one of tasks is tested: add_integer at 3-20",
    ),
    "mistyped model": ("finetune", ["model.name=FOLDER/almots"], "there is no such folder, did you mean"),
    "mistyped run": ("evaluate", ["engine.model.name=checkpoints/a/b"], "engine.model.name = checkpoints/a/b: ther"),
    "groups of digits that are not asked for": ("finetune", ["tokenizer.digits.k=4"], "use kind=k_digit, not original"),
    "places without embeddings": (
        "finetune",
        ["parts.place_embeddings.places=4", "format.reverse=total"],
        "up to 8 digits: use as",
    ),
    "products counted down": (
        "pretrain",
        [
            "parts.countdown_ids={}",
            "format={reverse: none, pad: answer, carry_place: true}",
            "data.tasks=[multiply_hard_integer]",
        ],
        "products are longer: leave multiply_hard_integer out of data.tasks",
    ),
    "a part of pretrained models": ("pretrain", ["parts.walk.heads=1"], "parts.walk is not for models from scratch"),
    "a part of models from scratch": (
        "finetune",
        ["parts.countdown_ids={}"],
        "parts.countdown_ids is not for pretrained models",
    ),
    "no key": (
        "evaluate",
        ["engine={kind: openai, model: x, base_url: 'https://h/v1', api_key_env: NO_KEY}"],
        "NO_KEY",
    ),
    "questions without text": ("evaluate", ["benchmark={kind: own_questions, file: FOLDER/latin.py}"], "latin.py: "),
    "problems without text": ("evaluate", ["benchmark.published=FOLDER/latin.jsonl"], "latin.jsonl: not UTF-8 text"),
    "left to no endpoint": ("evaluate", ["sampling.temperature=null"], "engine.kind=local needs a value"),
    "no problems": ("evaluate", ["benchmark.published=/nowhere.json"], "/nowhere.json: No such file or directory"),
    "no place": ("pretrain", ["output=FOLDER/file/x"], "Not a directory"),
    "no logger": ("pretrain", ["training.report_to=[trackio]"], "trackio is not installed"),
    "another config": ("pretrain", ["name=other", "resume=true", "seed=5"], "seed was 0, is 5; give another name"),
    "trained longer": ("pretrain", ["name=other", "resume=true", "training.max_steps=9000"], "a different training"),
    "damaged records": ("pretrain", ["name=damaged", "resume=true"], "samples.jsonl:1: not JSON"),
}


def _arguments(command: str, folder: Path, more: list[str]) -> list[str]:
    own = [part.replace("FOLDER", str(folder)) for part in more]
    return [str(ROOT / "configs" / f"{CONFIGS[command]}.yaml"), f"output={folder}", "name=new", *own]


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_work_is_one_line_before_a_model_is_loaded(refused, name):
    status, error = refused[name]
    assert CASES[name][2] in error
    assert status == 2
    assert error.count("\n") == 1
