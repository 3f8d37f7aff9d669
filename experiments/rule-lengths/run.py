"""How long may numbers be if a rule and its trace have to fit into 2,000 tokens? (Number Cookbook, Table 19)

    python -m experiments.rule-lengths.run [samples=8]

Counts the tokens of prompt and response together, at each level of detail of the traces, with Llama-3's tokenizer (up
to three digits per token) and SmolLM2's (one digit). A length fits if all of its `samples` (8) training problems fit.
The table also shows the paper's own lengths, and the lengths at which its released rules were found to fit (all, median
and any of 12 samples, Llama-3's tokenizer), both from table19.csv. Writes rule_lengths.md and .png, and rule_tokens.md
with the mean number of tokens of a response by task, length and detail, and of a direct answer, to
checkpoints/results/. Takes a quarter of an hour on one core, and needs no
model.
"""

import csv
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import get_args

import matplotlib.pyplot as plt
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from experiments.shared.arguments import own, whole_number
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.vocabularies import llama_3_vocabulary
from lab.config.schema import Detail, RulesConfig
from lab.drawing.tables import Table
from lab.errors import TaskError, exit_cleanly
from lab.models.sources import locate
from lab.numbers.sampling import Cell, Problem, problem
from lab.numbers.tasks import TASKS, Task
from lab.progress import quiet_libraries
from lab.text import prompts, rule_following

HERE = Path(__file__).parent
WINDOW = RulesConfig().window
DETAILS: tuple[Detail, ...] = get_args(Detail)[:3]
COUNTED = (1, 3, 5, 10, 20, 50, 100)
"""Lengths at which tokens are reported, whether or not they fit."""
SUMMARIES: dict[str, Callable] = {"all": max, "median": median, "any": min}


@exit_cleanly
def main(arguments: list[str]) -> None:
    results = beside_runs(arguments)
    measure(whole_number(own(arguments, "samples"), "samples", 8), results)


def measure(samples: int, results: Results) -> None:
    quiet_libraries()
    tokenizers: dict[str, PreTrainedTokenizerBase] = {
        "Llama-3": llama_3_vocabulary(),
        "SmolLM2": AutoTokenizer.from_pretrained(locate("smollm2-135m-instruct")),
    }
    with (HERE / "table19.csv").open(newline="") as file:
        published = {row["task"]: row for row in csv.DictReader(file)}
    reaches, counts = [], []
    for key, task in TASKS.items():
        base = key.replace("_easy", "").replace("_hard", "")
        if base != key and base in TASKS:
            continue  # both difficulties share a rule
        paper = published.get(key, {})
        row: list[str] = [key, paper.get("paper", "")]
        row.append("/".join(paper[f"released_{name}"] for name in SUMMARIES) if paper else "")
        for detail in DETAILS:
            for tokenizer in tokenizers.values():
                found = longest_fitting(task, samples, detail, tokenizer)
                row.append("/".join(str(longest) for longest in found))
        reaches.append(tuple(row))
        print(*row, sep="\t", flush=True)
        counts += tokens_by_length(task, samples, tokenizers["SmolLM2"])
    columns = (
        "task",
        "Table 19",
        "released rules",
        *(f"{detail}, {name}" for detail in DETAILS for name in tokenizers),
    )
    table = Table(f"Longest numbers whose rule fits {WINDOW} tokens", columns, reaches, names=1)
    results.file("rule_lengths.md").write_text(table.markdown())
    columns = ("task", "digits", "prompt", *DETAILS, "direct answer")
    table = Table("Tokens of a response (SmolLM2), means", columns, counts, names=1)
    results.file("rule_tokens.md").write_text(table.markdown())
    draw([row for row in reaches if row[1]], results.file("rule_lengths.png"))


def drawn(task: Task, length: int, samples: int) -> list[Problem]:
    """Training problems of a task and length; empty if this length has none."""
    try:
        return [problem(Cell(task, length), "train", 0, index) for index in range(samples)]
    except TaskError:
        return []


@cache
def response(item: Problem, detail: Detail) -> str:
    return rule_following.completion(item, RulesConfig(detail=detail))


def tokens(text: str, tokenizer: PreTrainedTokenizerBase) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False))


def tokens_by_length(task: Task, samples: int, tokenizer: PreTrainedTokenizerBase) -> list[tuple[str, ...]]:
    """A row for each length: the mean number of tokens of the prompt, of a response at each level of detail, and of a
    direct answer."""
    rows = []
    for length in COUNTED:
        items = drawn(task, length, samples) if length <= task.difficulty.longest else []
        if items:
            texts = [[rule_following.prompt(item) for item in items]]
            texts += [[response(item, detail) for item in items] for detail in DETAILS]
            texts.append([prompts.completion(item) for item in items])
            means = [mean(tokens(text, tokenizer) for text in column) for column in texts]
            rows.append((task.key, str(length), *(f"{value:.0f}" for value in means[:-1]), f"{means[-1]:.1f}"))
    response.cache_clear()
    return rows


def longest_fitting(task: Task, samples: int, detail: Detail, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The lengths up to which all, half and any of the samples fit, without a gap; lengths above 20 in steps of 5."""
    found = dict.fromkeys(SUMMARIES, 0)
    going = set(SUMMARIES)
    for length in range(1, task.difficulty.longest + 1):
        if (length > 20 and length % 5) or not going:
            continue
        items = drawn(task, length, samples)
        if not items:
            continue
        needs = [
            1 + tokens(rule_following.prompt(item), tokenizer) + tokens(response(item, detail), tokenizer)
            for item in items
        ]
        for name in list(going):
            if SUMMARIES[name](needs) <= WINDOW:
                found[name] = length
            else:
                going.remove(name)
    return list(found.values())


def draw(rows: list[tuple[str, ...]], path: Path) -> None:
    """One line for each cell of Table 19: the lengths that fit according to the paper, with its released rules, and
    with ours."""
    figure, axes = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
    places = range(len(rows))
    series = {
        "Table 19": [int(row[1]) for row in rows],
        "released rules, Llama-3 (all of 12)": [int(row[2].split("/")[0]) for row in rows],
        "full, Llama-3 (all)": [int(row[3].split("/")[0]) for row in rows],
        "values, Llama-3 (all)": [int(row[5].split("/")[0]) for row in rows],
        "state, Llama-3 (all)": [int(row[7].split("/")[0]) for row in rows],
    }
    styles = [
        *(("|", "black", 90), ("x", "tab:red", 30), ("o", "tab:blue", 26), (".", "tab:cyan", 60)),
        ("+", "tab:green", 40),
    ]
    for (label, values), (marker, colour, size) in zip(series.items(), styles, strict=True):
        axes.scatter([max(value, 0.7) for value in values], places, size, colour, marker=marker, label=label)
    axes.set_xscale("log")
    axes.set_xticks([0.7, 1, 2, 5, 10, 20, 50, 100], ["0", "1", "2", "5", "10", "20", "50", "100"])
    axes.set_yticks(places, [row[0] for row in rows])
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.set_xlabel("longest number (digits) in a window of 2,000 tokens")
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
