"""How long may numbers be for their rule, followed, to fit a window of 2,000 tokens? (Number Cookbook, Table 19)

    python experiments/rule_lengths.py [samples]
    python experiments/rule_lengths.py long_products

Prompt and response together, counted with Llama-3's tokenizer (up to three digits a token) and SmolLM2's (one). A
length fits when all of its `samples` (20) training problems do; beside it stand the paper's table and what its released
rules were measured to fit (all, median and any of 12 samples, Llama-3's tokenizer), both from table19.csv. Writes
experiments/results/rule_lengths.md and .png; 10 minutes on one core, without a model.

The lab's rules of fractions multiply and divide in one line, where the released ones of sub and multiply go digit by
digit (that of add has one line too). `long_products` counts the rules of experiments/long_products/, which go digit by
digit in all three; beside that they show the functions they call and work out the greatest common divisor, which the
released ones do not. Writes experiments/results/rule_lengths_fractions.md.
"""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import matplotlib.pyplot as plt
from transformers import AutoTokenizer

from lab.config.schema import RulesConfig
from lab.drawing.tables import Table
from lab.errors import TaskError
from lab.models.sources import locate
from lab.models.vocabularies import load_vocabulary
from lab.numbers.sampling import Cell, Problem, problem
from lab.numbers.tasks import TASKS, Task
from lab.progress import quiet_libraries
from lab.text.examples import example, tokens_needed

HERE = Path(__file__).parent
RULES = RulesConfig()
LONG_PRODUCTS = RulesConfig(folder=HERE / "long_products")
FRACTIONS = ("add_fraction", "sub_fraction", "multiply_hard_fraction")
SAMPLES = 20
SUMMARIES: dict[str, Callable] = {"all": max, "median": median, "any": min}


def fractions(samples: int) -> None:
    tokenizer, published = load_vocabulary("llama-3"), read_published()
    rows = []
    for key in FRACTIONS:
        counts = [
            longest_fitting(TASKS[key], samples, lambda item, own=own: tokens_needed(example(item, own), tokenizer))
            for own in (LONG_PRODUCTS, RULES)
        ]
        released = "/".join(published[key][f"released_{name}"] for name in SUMMARIES)
        rows.append((key, published[key]["paper"], released, *("/".join(map(str, found)) for found in counts)))
    columns = ("task", "Table 19", "released rules", "ours, digit by digit", "ours")
    table = Table(f"Longest fractions whose rule fits {RULES.window} tokens of Llama-3", columns, rows, names=1)
    (HERE / "results" / "rule_lengths_fractions.md").write_text(table.markdown())
    print(table.markdown())


def read_published() -> dict[str, dict[str, str]]:
    with (HERE / "table19.csv").open(newline="") as file:
        return {row["task"]: row for row in csv.DictReader(file)}


def main(samples: int) -> None:
    tokenizers = {
        "Llama-3": load_vocabulary("llama-3"),
        "SmolLM2": AutoTokenizer.from_pretrained(locate("smollm2-135m-instruct")),
    }
    published = read_published()
    rows = []
    for key, task in TASKS.items():
        base = key.replace("_easy", "").replace("_hard", "")
        if base != key and base in TASKS:
            continue  # it shares the rule
        paper = published.get(key, {})
        row: list[str] = [key, paper.get("paper", "")]
        row.append("/".join(paper[f"released_{name}"] for name in SUMMARIES) if paper else "")
        for tokenizer in tokenizers.values():

            def tokens(item: Problem, tokenizer=tokenizer) -> int:
                return tokens_needed(example(item, RULES), tokenizer)

            row.append("/".join(str(longest) for longest in longest_fitting(task, samples, tokens)))
        rows.append(tuple(row))
        print(*row, sep="\t", flush=True)
    columns = ("task", "Table 19", "released rules", *(f"ours, {name}" for name in tokenizers))
    table = Table(f"Longest numbers whose rule fits {RULES.window} tokens", columns, rows, names=1)
    (HERE / "results" / "rule_lengths.md").write_text(table.markdown())
    draw([row for row in rows if row[1]], HERE / "results" / "rule_lengths.png")


def longest_fitting(task: Task, samples: int, tokens: Callable[[Problem], int]) -> list[int]:
    """The lengths up to which all, half and any of the samples fit, without a gap; lengths above 20 in steps of 5."""
    found = dict.fromkeys(SUMMARIES, 0)
    going = set(SUMMARIES)
    for length in range(1, task.difficulty.longest + 1):
        if (length > 20 and length % 5) or not going:
            continue
        try:
            needs = [tokens(problem(Cell(task, length), "train", 0, index)) for index in range(samples)]
        except TaskError:  # no such problems at this length
            continue
        for name in list(going):
            if SUMMARIES[name](needs) <= RULES.window:
                found[name] = length
            else:
                going.remove(name)
    return list(found.values())


def draw(rows: list[tuple[str, ...]], path: Path) -> None:
    """One line a cell of Table 19: what fits, by the paper, its released rules, and ours."""
    figure, axes = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
    places = range(len(rows))
    series = {
        "Table 19": [int(row[1]) for row in rows],
        "released rules, Llama-3 (all of 12)": [int(row[2].split("/")[0]) for row in rows],
        "ours, Llama-3 (all)": [int(row[3].split("/")[0]) for row in rows],
        "ours, SmolLM2 (all)": [int(row[4].split("/")[0]) for row in rows],
    }
    styles = [("|", "black", 90), ("x", "tab:red", 30), ("o", "tab:blue", 26), (".", "tab:cyan", 60)]
    for (label, values), (marker, colour, size) in zip(series.items(), styles, strict=True):
        axes.scatter([max(value, 0.7) for value in values], places, size, colour, marker=marker, label=label)
    axes.set_xscale("log")
    axes.set_xticks([0.7, 1, 2, 5, 10, 20, 50, 100], ["0", "1", "2", "5", "10", "20", "50", "100"])
    axes.set_yticks(places, [row[0] for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.grid(alpha=0.3)
    axes.set_xlabel("longest number (digits) in a window of 2,000 tokens")
    axes.legend(fontsize=7, loc="lower left")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    quiet_libraries()
    if sys.argv[1:] == ["long_products"]:
        fractions(SAMPLES)
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else SAMPLES)
