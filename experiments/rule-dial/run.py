"""What does a trace cost at each level of detail (rules.detail), compared with a direct answer?

    python -m experiments.rule-dial.run [samples=20] [output=checkpoints]

Counts the tokens of a response with SmolLM2's tokenizer, for sums, differences, maxima and products by a short factor,
by length and by the number of digits that a step takes (rules.unit). Products follow the lab's own rule, which
multiplies by one digit at a time, and the rule of configs/rules, which multiplies by the whole factor. A value is the
mean of `samples` (20) training problems. Writes rule_dial.csv, the results.csv of the finding, to results/ in the
output folder. Takes seconds, and needs no model.
"""

import sys
from functools import cache
from itertools import product
from pathlib import Path
from statistics import mean
from typing import get_args

from transformers import AutoTokenizer

from experiments.shared.arguments import own, whole_number
from experiments.shared.measuring import as_table, measured
from experiments.shared.publishing import beside_runs, printed
from lab.config.schema import Detail, RulesConfig
from lab.errors import exit_cleanly
from lab.models.sources import locate
from lab.numbers.sampling import Cell, Problem, problem
from lab.numbers.tasks import TASKS
from lab.progress import quiet_libraries
from lab.text import prompts, rule_following

SHORT = "multiply_easy_integer, whole factor"
RULES = {
    "add_integer": None,
    "sub_integer": None,
    "max_integer": None,
    "multiply_easy_integer": None,
    SHORT: Path(__file__).parents[2] / "configs" / "rules",
}
"""Each row's task, and the folder of its rule if it is not the lab's own."""
LENGTHS = (3, 5, 10, 20)
UNITS = (1, 3, 5)
DETAILS: tuple[Detail, ...] = get_args(Detail)[:-1]


@exit_cleanly
def main(arguments: list[str]) -> None:
    samples = whole_number(own(arguments, "samples", "output"), "samples", 20)
    quiet_libraries()
    cells = [
        {"task": task, "digits_a_step": unit, "digits": digits, "trace": detail, "samples": samples}
        for task, unit, digits, detail in product(RULES, UNITS, LENGTHS, DETAILS)
    ]
    rows = measured(beside_runs(arguments).file("rule_dial.csv"), cells, tokens)
    printed(as_table(rows, f"Tokens of a response (SmolLM2), means of {samples} problems"))


def tokens(task: str, digits_a_step: int, digits: int, trace: Detail, samples: int) -> dict[str, float]:
    """The mean number of tokens of the prompt, of a response with its trace, and of a direct answer."""
    items: list[Problem] = [
        problem(Cell(TASKS[task.split(",")[0]], digits), "train", 0, index) for index in range(samples)
    ]
    rules = RulesConfig(unit=digits_a_step, detail=trace, folder=RULES[task])
    return {
        "prompt": mean(length(rule_following.prompt(item, rules)) for item in items),
        "tokens": mean(length(rule_following.completion(item, rules)) for item in items),
        "direct": mean(length(prompts.completion(item)) for item in items),
    }


@cache
def length(text: str) -> int:
    """The number of tokens of a text."""
    return len(tokenizer().encode(text, add_special_tokens=False))


@cache
def tokenizer():
    return AutoTokenizer.from_pretrained(locate("smollm2-135m-instruct"))


if __name__ == "__main__":
    main(sys.argv[1:])
