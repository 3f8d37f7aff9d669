"""What does a trace cost at each level of detail (rules.detail), compared with a direct answer?

    python experiments/rule_dial.py [samples=20] [publish=true]

Counts the tokens of a response with SmolLM2's tokenizer, for sums, differences, maxima and products by a short factor,
by length and by the number of digits that a step takes (rules.unit); the last columns divide them by the tokens of a
direct answer. Products follow the lab's own rule, which multiplies by one digit at a time, and the rule of
configs/rules, which multiplies by the whole factor. Each value is a mean of `samples` (20) training problems. Writes
rule_dial.md and .png to checkpoints/results/, or to experiments/results/ with publish=true. Takes seconds, and needs no
model.
"""

import sys
from pathlib import Path
from statistics import mean
from typing import get_args

import matplotlib.pyplot as plt
from shared.arguments import own, whole_number
from shared.publishing import take_results
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from lab.config.schema import Detail, RulesConfig
from lab.drawing.tables import Table
from lab.errors import exit_cleanly
from lab.models.sources import locate
from lab.numbers.sampling import Cell, Problem, problem
from lab.numbers.tasks import TASKS
from lab.progress import quiet_libraries
from lab.text import prompts, rule_following

HERE = Path(__file__).parent
SHORT = "multiply_easy_integer, whole factor"
RULES = {
    "add_integer": None,
    "sub_integer": None,
    "max_integer": None,
    "multiply_easy_integer": None,
    SHORT: HERE.parent / "configs" / "rules",
}
"""Each row's task, and the folder of its rule if it is not the lab's own."""
LENGTHS = (3, 5, 10, 20)
UNITS = (1, 3, 5)
DETAILS: tuple[Detail, ...] = get_args(Detail)[:-1]


@exit_cleanly
def main(arguments: list[str]) -> None:
    results, rest = take_results(arguments, HERE / "results")
    samples = whole_number(own(rest, "samples"), "samples", 20)
    quiet_libraries()
    tokenizer = AutoTokenizer.from_pretrained(locate("smollm2-135m-instruct"))
    counts = {
        (name, unit, length): means(name, unit, length, samples, tokenizer)
        for name in RULES
        for unit in UNITS
        for length in LENGTHS
    }
    columns = ("task", "unit", "digits", "prompt", *DETAILS, "direct", *(f"{detail} / direct" for detail in DETAILS))
    rows = []
    for (key, unit, length), (prompt, *traces, direct) in counts.items():
        written = [f"{value:.0f}" for value in (prompt, *traces)]
        ratios = [f"{trace / direct:.1f}" for trace in traces]
        rows.append((key, str(unit), str(length), *written, f"{direct:.1f}", *ratios))
    table = Table(f"Tokens of a response (SmolLM2), means of {samples} problems", columns, rows, names=3)
    results.file("rule_dial.md").write_text(table.markdown())
    print(table.markdown())
    draw(counts, results.file("rule_dial.png"))


def means(name: str, unit: int, length: int, samples: int, tokenizer: PreTrainedTokenizerBase) -> list[float]:
    """The mean number of tokens of the prompt, of a response at each level of detail, and of a direct answer."""
    task = TASKS[name.split(",")[0]]
    items: list[Problem] = [problem(Cell(task, length), "train", 0, index) for index in range(samples)]
    rules = [RulesConfig(unit=unit, detail=detail, folder=RULES[name]) for detail in DETAILS]
    texts = [[rule_following.prompt(item, rules[0]) for item in items]]
    texts += [[rule_following.completion(item, each) for item in items] for each in rules]
    texts.append([prompts.completion(item) for item in items])
    return [mean(len(tokenizer.encode(text, add_special_tokens=False)) for text in column) for column in texts]


def draw(counts: dict[tuple[str, int, int], list[float]], path: Path) -> None:
    figure, grid = plt.subplots(1, len(RULES), figsize=(14, 3.2), sharey=True, layout="constrained")
    for axes, key in zip(grid, RULES, strict=True):
        for unit, style in zip(UNITS, ("-o", "--s", ":^"), strict=True):
            for place, detail in enumerate(DETAILS, 1):
                ratios = [counts[key, unit, length][place] / counts[key, unit, length][-1] for length in LENGTHS]
                axes.plot(
                    LENGTHS,
                    ratios,
                    style,
                    color=f"C{place}",
                    ms=4,
                    label=f"{detail}, {unit} digit{'s' * (unit > 1)} a step",
                )
        axes.set(title=key.replace(", ", "\n"), xlabel="digits", yscale="log")
    grid[0].set_ylabel("tokens / tokens of a direct answer")
    grid[-1].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
