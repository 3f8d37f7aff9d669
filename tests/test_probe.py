"""The real command on a model from scratch that has hardly learned anything: every instrument runs and is kept."""

import re
from pathlib import Path

import pytest
import yaml

from lab.probing.config import ProbeConfig

ROOT = Path(__file__).parents[1]
SMALL = ["training.max_steps=2", "training.batch_size=4", "training.micro_batch_size=4", "training.log_every=1"]
SMALL += ["training.evaluate_every=2", "training.valid_problems=4", "evaluation.lengths=[3]"]
SMALL += ["evaluation.problems_per_length=2", "evaluation.while_training=[]"]
FEW = [
    "sums.per_length=12",
    "sums.pairs=8",
    "sums.probed=64",
    "sums.lengths=[3, 5]",
    "sums.trained=3",
    "sums.column=1",
    "examples=1",
]


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    from lab.pretrain import main

    folder = tmp_path_factory.mktemp("runs")
    main([str(ROOT / "configs" / "scratch_add.yaml"), *SMALL, f"output={folder}"])
    return folder / "scratch_add"


@pytest.mark.slow
def test_instruments_are_kept_and_not_run_twice_and_one_that_fails_costs_itself_alone(
    subject, tmp_path, capsys, monkeypatch
):
    from lab.probe import main
    from lab.probing.addition.catalogue import INSTRUMENTS

    arguments = [str(ROOT / "configs" / "probe_scratch.yaml"), f"subject={subject}", f"output={tmp_path}", *FEW]
    arguments.append("instruments=[alignment, destinations]")
    main(arguments)
    run = tmp_path / "probe_scratch"
    stored = run / "probe_alignment.json"
    before = stored.read_bytes(), stored.stat().st_mtime_ns
    assert "attention on foreign digits" in (run / "tables.md").read_text()
    assert "CircuitsVis.render" in (run / "page.html").read_text()
    capsys.readouterr()
    (run / "probe_destinations.json").unlink()
    main([*arguments, "resume=true"])
    assert (stored.read_bytes(), stored.stat().st_mtime_ns) == before
    assert capsys.readouterr().out.splitlines()[0] == "destinations ..."
    (run / "probe_destinations.json").unlink()
    monkeypatch.setitem(INSTRUMENTS, "destinations", lambda session: 1 / 0)
    main([*arguments, "resume=true"])
    printed = capsys.readouterr()
    assert "Right sums by digits: " in printed.out
    assert "Not measured: destinations." in printed.out
    assert "destinations: ZeroDivisionError: division by zero" in (run / "verdicts.md").read_text()
    page = (run / "page.html").read_text()
    assert "was not measured: ZeroDivisionError: division by zero" in page
    assert "alignment: attention" in page


@pytest.mark.slow
def test_every_instrument_runs_on_a_model_that_cannot_add_or_says_that_it_cannot(subject, tmp_path, capsys):
    from lab.probe import main

    config = ROOT / "configs" / "probe_scratch.yaml"
    named = set(ProbeConfig.model_fields["instruments"].annotation.__args__[0].__args__)  # type: ignore[union-attr]
    assert named > set(yaml.safe_load(config.read_text())["instruments"])
    main([str(config), f"subject={subject}", f"output={tmp_path}", f"instruments=[{', '.join(sorted(named))}]", *FEW])
    kept = {path.stem.removeprefix("probe_") for path in (tmp_path / "probe_scratch").glob("probe_*.json")}
    refused = {"patching", "attribution", "path_patching", "edges", "head_contents", "illusion"}
    refused |= {"inputs", "atp_star", "steering", "groups"}
    assert kept >= {"competence", *named} - refused
    said = (tmp_path / "probe_scratch" / "verdicts.md").read_text()
    for name in named - kept:
        assert re.search(rf"^- {name}: .*in 0 % of [0-9]+ pairs, and at least 50 % are needed", said, re.MULTILINE)
    found = [line for line in capsys.readouterr().out.splitlines() if not line.endswith("...")]
    place = next(index for index, line in enumerate(found) if line.startswith("run directory: "))
    assert 1 <= place <= 5
    assert "Right sums by digits: " in found[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("subject=nowhere/at_all", "cannot be reached"),
        ("sums.column=4", "sums: column should be below trained=4"),
        ("instruments=[alignment, alignment]", "none twice"),
        ("instruments=[telepathy]", "telepathy"),
    ],
)
def test_what_cannot_be_measured_is_one_line_and_writes_nothing(change, message, tmp_path, capsys):
    from lab.probe import main

    with pytest.raises(SystemExit) as exit:
        main([str(ROOT / "configs" / "probe_scratch.yaml"), f"output={tmp_path}", change])
    assert exit.value.code == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_benchmark_of_instruments_names_its_config_itself(capsys):
    from lab.probe import main

    with pytest.raises(SystemExit) as end:
        main(["benchmark", "--dry-run"])
    assert end.value.code == 0
    assert "name: probe_benchmark" in capsys.readouterr().out


PAIRS = [str(ROOT / "configs" / "probe_max.yaml"), "subject=zoo/adds-floats", 'pairs.template=""', "pairs.right=first",
         "pairs.length=4", "pairs.count=8", "instruments=[patching, path_patching, logit_lens]"]  # fmt: skip


@pytest.mark.slow
def test_the_command_measures_pairs_of_a_task_that_are_no_sums_of_integers(tmp_path, capsys):
    from lab.probe import main

    main([*PAIRS, "pairs.task=add_float", "pairs.change=middle", f"output={tmp_path}"])
    said = (tmp_path / "probe_max" / "verdicts.md").read_text()
    assert "- competence: The model answers both prompts right in 100 %" in said
    assert re.search(
        r"- patching: L0H\d moves \d+ % \(.*n = \d+\) of the answer, base to source; the median head", said
    )
    page = (tmp_path / "probe_max" / "page.html").read_text()
    assert "carry" not in page[page.index("<main>") : page.index("<script>\nconst figures")]
    assert "answer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["pairs.task=add_real"], "task 'add_real'"),
        (['pairs.task=""', "pairs.file=nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (['pairs.task=""'], "give a task, such as max_float, or a file of pairs"),
        (["pairs.task=add_float", "instruments=[alignment]"], "alignment take sums and no pairs"),
        (["pairs.task=add_float", 'pairs.template="{a}+{b}="'], "is asked in its own notation: leave it out"),
    ],
)
def test_pairs_that_cannot_be_are_refused_in_one_line_before_anything_is_written(changes, message, tmp_path, capsys):
    from lab.probe import main

    with pytest.raises(SystemExit) as exit:
        main([*PAIRS, *changes, f"output={tmp_path}"])
    assert exit.value.code == 2
    said = capsys.readouterr().err
    assert message in said
    assert not list(tmp_path.iterdir())
