"""List the tasks, models, configs or runs.

lab list tasks               the 53 tasks, each with an example, and what their prompts leave open
lab list models              the names that model.name, engine.model.name and `lab ask` accept
lab list configs             the configs that come with the lab
lab list parts               what can be put into a pretrained model, with the keys of each part
lab list runs [FOLDER ...]   the run directories in the folders and below them (default: checkpoints)
lab list lm-eval             the folder of tasks for lm-evaluation-harness
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from lab.command import entry_point
from lab.config.commands import command_of
from lab.config.loading import keys_of
from lab.drawing.tables import Table
from lab.drawing.terminal import Console
from lab.errors import ConfigError
from lab.models.sources import RUNS
from lab.shipped import shipped_configs


@entry_point
def main(words: list[str]) -> None:
    if not words or {"-h", "--help"} & set(words):
        print(__doc__, end="")
    elif words[0] == "lm-eval":
        from lab.plugins.lm_eval import tasks_folder

        print(tasks_folder())
    elif words == ["parts"]:
        print(parts())
    else:
        if words[0] != "runs" and words[1:]:
            raise ConfigError(f"lab list {' '.join(words)}: {words[0]} takes no further words")
        listed = LISTINGS.get(words[0])
        if not listed:
            raise ConfigError(f"lab list {words[0]}: should be one of {', '.join([*LISTINGS, 'parts', 'lm-eval'])}")
        table = listed(words[1:])
        Console().print(table.terminal() if table.rows else f"no {words[0]} in {', '.join(words[1:]) or RUNS}")
        if words[0] == "tasks":
            Console().print(left_open().terminal())


def tasks(_: Sequence[str] = ()) -> Table:
    """Every task with its tested lengths and an example: the first test problem of the second-shortest length."""
    from lab.numbers.sampling import Cell, problem
    from lab.numbers.tasks import TASKS

    rows = []
    for key, task in TASKS.items():
        example = problem(Cell(task, task.tested_lengths[1]), "test", 0, 0)
        operands = ", ".join(filter(None, (example.a, example.b)))
        lengths = f"{task.tested_lengths[0]}-{task.tested_lengths[-1]}"
        rows.append((key, lengths, operands, example.answer))
    return Table("Tasks", ("task", "digits", "operands", "answer"), rows, 4)


def left_open() -> Table:
    """What the prompts leave open about the answer and how the lab decides it, and the tasks that it concerns."""
    from lab.numbers.tasks import TASKS

    concerned: dict[str, list[str]] = {}
    for key, task in TASKS.items():
        for decision in task.left_open:
            concerned.setdefault(decision, []).append(key)
    rows = [(decision, ", ".join(keys)) for decision, keys in concerned.items()]
    return Table("What the prompts leave open", ("decided", "tasks"), rows, 2)


def models(_: Sequence[str] = ()) -> Table:
    """The embedded models, the zoo, and the forms that names of other models have."""
    from lab.models import sources

    rows = [(name, "embedded: fetched once from the package index") for name in sources.EMBEDDED]
    rows += [(name, sources.about(folder)) for name, folder in sources.zoo().items()]
    rows += [
        ("checkpoints/NAME", "the model of a run of finetune, pretrain or adder"),
        ("FOLDER", "a model or adapters in Hugging Face's layout"),
        ("ORGANISATION/NAME", "a model on the Hugging Face hub"),
    ]
    return Table("Models", ("name", "what it is"), rows, 2)


def configs(_: Sequence[str] = ()) -> Table:
    """Every shipped config with its command and the first sentence of its opening comment."""
    rows = [(name, command_of(keys_of(path)) or "", purpose(path)) for name, path in shipped_configs().items()]
    return Table("Configs", ("name", "command", "what it is for"), rows, 3)


def parts() -> str:
    """Every part that comes with the lab, with what it does, and its keys."""
    from lab.config.describing import help_text
    from lab.config.parts import MODULES, section_of

    texts = []
    for kind in MODULES:
        section = section_of(kind)
        about = textwrap.fill(" ".join((section.__doc__ or "").split()), width=114)
        keys = textwrap.indent(f"{about}\n{help_text(section)}".rstrip(), "    ")
        texts.append(f"parts.{kind}\n{keys}")
    return "\n\n".join(texts)


def runs(folders: Sequence[str] = ()) -> Table:
    """The run directories in the folders and below them. Raises RunError if a folder that is named does not exist."""
    from lab.site.gather import gather_any

    records = gather_any([Path(folder) for folder in folders or [RUNS] if folders or Path(RUNS).is_dir()])
    rows = [(record.name, record.command, record.status, record.model) for record in records]
    return Table("Runs", ("name", "command", "status", "model"), rows, 4)


def purpose(path: Path) -> str:
    """The first sentence of the comment at the beginning of a config."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    comment = " ".join(line.removeprefix("#").strip() for line in lines[:first])
    return comment.split(". ")[0].rstrip(".")


LISTINGS = {"tasks": tasks, "models": models, "configs": configs, "runs": runs}


if __name__ == "__main__":
    main()
