"""The benchmarks as tasks of lm-evaluation-harness, with the same questions and the same scores.

    FOLDER=$(lab list lm-eval)
    lm_eval --model hf --model_args pretrained=MODEL --include_path $FOLDER --tasks nupa_add_integer,nupa_max_float

nupa_<task>      the 53 tasks of lab/numbers/tasks.py, as raw text that the model continues (the base setting)
nupa             all of them
two_integers     questions as a user's message, so that a chat model needs --apply_chat_template
carry_free       the same

--metadata '{"problems_per_range": 100, "shots": 5, "problem_seed": 1}' changes what is asked (see OPTIONS). Use it to
ask fewer questions; do not use --limit, which keeps only the shortest numbers. The answer to each question has the
token budget that it has in `lab evaluate`: counted with the model's tokenizer if the model is local, and as one token
per character if not. --gen_kwargs max_gen_toks=4096 sets another budget, for instance for a model that thinks.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lab.benchmarks.kinds import open_benchmark
from lab.benchmarks.nupa.problems import pick_problems
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.results import facts
from lab.config.evaluation import CarryFreeConfig, TwoIntegersConfig
from lab.models.sources import cache_folder
from lab.numbers.sampling import Cell
from lab.numbers.tasks import TASKS
from lab.plugins.shared import NUPA_METRICS, SUM_METRICS, VERSION, budget, completed, figures, open_cached
from lab.runs import Run, put_in_place

if TYPE_CHECKING:
    from datasets import Dataset


OPTIONS: dict[str, dict[str, Any]] = {
    "nupa": {"problems_per_range": 25, "shots": 0},
    "two_integers": {"problems": 100},
    "carry_free": {"problems_per_length": 200, "language": "zh"},
}
"""What --metadata may change in each benchmark, besides `problem_seed` (it is not called `seed`, which vLLM uses)."""


# What lm-eval calls ----------------------------------------------------------------------------------------------


def questions(benchmark: Mapping[str, Any], problem_seed: int, **metadata: Any) -> "dict[str, Dataset]":
    """The dataset of a task (lm-eval's `custom_dataset`).

    Args:
        benchmark: the benchmark's config, from dataset_kwargs.
        problem_seed: the seed from which problems are drawn.
        metadata: everything in --metadata; lm-eval also passes the model's arguments here, which are ignored.
    """
    from datasets import Dataset

    options = {name: metadata[name] for name in OPTIONS[benchmark["kind"]]}
    config = json.dumps({**benchmark, **options})
    opened = open_cached(config, problem_seed)
    docs = [
        {
            "benchmark": config,
            "problem_seed": problem_seed,
            "index": index,
            "prompt": request.prompt if isinstance(request.prompt, str) else request.prompt[-1].content,
            **facts(opened.problems[index]),
        }
        for index, request in enumerate(opened.requests())
    ]
    return {"test": Dataset.from_list(docs)}


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, float]:
    """The metrics of an answer (lm-eval's `process_results`)."""
    benchmark = open_cached(doc["benchmark"], doc["problem_seed"])
    return figures(benchmark.score(doc["index"], completed(results[0] or "")))


# The folder of tasks ---------------------------------------------------------------------------------------------


def tasks_folder() -> Path:
    """The folder for --include_path, in the cache folder. It is written if it is missing or from another version."""
    folder = cache_folder() / "lm_eval_tasks"
    files = {f"{name}.yaml": yaml.dump(config, Dumper=_Dumper, sort_keys=False) for name, config in _configs().items()}
    if {path.name: path.read_text() for path in folder.glob("*")} != files:
        Run.check_writable(folder)
        with put_in_place(folder, replace=True) as fresh:
            for name, text in files.items():
                (fresh / name).write_text(text)
    return folder


def _configs() -> dict[str, dict[str, Any]]:
    """The configs by name: one for each task, and one for the group."""
    nupa = {f"nupa_{key}": _nupa_task(key) for key in TASKS}
    group = {
        "group": "nupa",
        "task": list(nupa),
        "aggregate_metric_list": [
            {"metric": name, "aggregation": "mean", "weight_by_size": False} for name in NUPA_METRICS
        ],
        "metadata": {"version": VERSION, "description": "NUPA (Number Cookbook): the mean over its tasks"},
    }
    sums = {
        config.kind: _task(
            config.kind, {"kind": config.kind}, budget(open_benchmark(config, seed=0)), SUM_METRICS, description
        )
        for config, description in (
            (TwoIntegersConfig(problems=1), "The sum of two integers of 2-30 digits, and nothing but the sum"),
            (CarryFreeConfig(problems_per_length=1), "Sums of two integers in which no column carries"),
        )
    }
    return {**nupa, "nupa": group, **sums}


def _nupa_task(key: str) -> dict[str, Any]:
    task = TASKS[key]
    # many of the longest problems, more than a run asks, so that the budget is enough for any seed
    longest = Nupa(pick_problems([Cell(task, task.tested_lengths[-1])], seed=0, per_range=100))
    description = f"NUPA (Number Cookbook): {task.name}, {task.representation.name}"
    return _task(f"nupa_{key}", {"kind": "nupa", "tasks": [key]}, budget(longest), NUPA_METRICS, description)


def _task(
    name: str, benchmark: dict[str, Any], max_tokens: int, metrics: Mapping[str, bool], description: str
) -> dict[str, Any]:
    return {
        "task": name,
        "class": _Function("lab.plugins.lm_eval_task.BudgetedTask"),
        "custom_dataset": _Function("lab.plugins.lm_eval.questions"),
        "dataset_kwargs": {"benchmark": benchmark},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "prompt",
        "doc_to_target": "answer",
        "process_results": _Function("lab.plugins.lm_eval.process_results"),
        # Without this, --num_fewshot would show other test questions; those of `shots` come from the training split.
        "num_fewshot": 0,
        "generation_kwargs": {"until": [], "do_sample": False, "temperature": 0.0, "max_gen_toks": max_tokens},
        "metric_list": [
            {"metric": metric, "aggregation": "mean", "higher_is_better": higher} for metric, higher in metrics.items()
        ],
        # A description at the top level would be put before every prompt.
        "metadata": {"version": VERSION, "description": description, "problem_seed": 0, **OPTIONS[benchmark["kind"]]},
    }


class _Function(str):
    """The full name of a function that lm-eval imports."""


class _Dumper(yaml.SafeDumper): ...


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))
