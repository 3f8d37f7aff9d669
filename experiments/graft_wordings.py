"""What decides how reliably a tuned model adds long numbers: the words before the sum, or those after it?

    python experiments/graft_wordings.py [run=checkpoints/graft_0] [digits=100] [problems=3]
                                         [wordings=0,1,2,3,4,5,6,7,8,9,10,11] [table=graft_wordings] [publish=true]

Cuts held-out wordings (lab/text/templates.py) after their second number, and joins every beginning to every ending. For
each such question, the model reads the right answer. The margin of an answer is the smallest margin of its digits: how
far the logit of the right token lies above that of the best wrong token. If it is below 0, greedy decoding writes a
wrong digit. One third of the problems have uniform digits, one third have carries everywhere, and one third have nines.

Shows the mean margin by ending and by beginning, and how much of the variance of the margins of questions each
explains (the two main effects of an analysis of variance). Leaves a table and a heat map.
"""

import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from shared.arguments import own, some_of, whole_number
from shared.publishing import Results, take_results

from lab.config.schema import ModelConfig
from lab.drawing import figures
from lab.drawing.tables import Table
from lab.errors import exit_cleanly
from lab.models import loading
from lab.models.swaps import swap_of
from lab.numbers.additions import addition
from lab.numbers.sampling import Problem
from lab.numbers.tasks import task
from lab.progress import quiet_libraries
from lab.text.examples import encode_prompt
from lab.text.formats import TextFormat
from lab.text.templates import HELD_OUT, worded

ROOT = Path(__file__).parents[1]
ASKED = ("uniform", "carries", "nines")
DRAWN = 7
"""The seed of the problems."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given = own(rest, "run", "digits", "problems", "wordings", "table")
    run = given.get("run", "checkpoints/graft_0")
    digits, problems = whole_number(given, "digits", 100), whole_number(given, "problems", 3)
    model, tokenizer = loading.load(ModelConfig(name=run))
    sums = [addition(ASKED[index % len(ASKED)], digits, DRAWN, index) for index in range(problems)]
    known = {str(place): template for place, template in enumerate(HELD_OUT)}
    templates = [known[place] for place in some_of(known, given.get("wordings"), "wordings", ",")]
    beginnings, endings = zip(*map(cut, templates), strict=True)
    margins = np.zeros((len(beginnings), len(endings)))
    for (row, beginning), (column, ending) in itertools.product(enumerate(beginnings), enumerate(endings)):
        found = [margin(model, tokenizer, beginning + ending, problem) for problem in sums]
        margins[row, column] = np.mean(found)
        print(f"{margins[row, column]:.2f} {beginning[-30:]!r} {ending!r}", flush=True)
    show(margins, templates, f"{digits} digits, n={problems}", results, given.get("table", "graft_wordings"))


def cut(template: str) -> tuple[str, str]:
    """The template up to its second number, and the rest."""
    end = max(template.index("{a}"), template.index("{b}")) + len("{a}")
    return template[:end], template[end:]


@torch.inference_mode()
def margin(model: Any, tokenizer: Any, template: str, problem: Problem) -> float:
    """How far the right token is ahead at the least certain digit of the answer."""
    example = worded(template, TextFormat(swap_of(model).format, [task("add_integer")]).example(problem))
    prompt = encode_prompt(example.prompt, tokenizer)
    answer = tokenizer.encode(example.completion, add_special_tokens=False)
    ids_1T = torch.tensor([[*prompt, *answer]], device=model.device)
    logits_AV = model(input_ids=ids_1T).logits[0, len(prompt) - 1 : -1].float()
    right_A1 = ids_1T[0, len(prompt) :, None]
    wrong_AV = logits_AV.scatter(1, right_A1, float("-inf"))
    return (logits_AV.gather(1, right_A1)[:, 0] - wrong_AV.amax(1)).min().item()


def explained(margins: np.ndarray) -> Mapping[str, float]:
    """The share of the variance of the margins that each main effect explains, and the rest: interaction and noise."""
    total = ((margins - margins.mean()) ** 2).mean()
    beginning, ending = (((margins.mean(axis) - margins.mean()) ** 2).mean() / total for axis in (1, 0))
    return {"beginning": beginning, "ending": ending, "rest": 1 - beginning - ending}


def show(margins: np.ndarray, templates: Sequence[str], scale: str, results: Results, name: str) -> None:
    beginnings, endings = zip(*map(cut, templates), strict=True)
    lines = [
        (template, f"{margins[place].mean():.2f}", f"{margins[:, place].mean():.2f}", f"{margins[place, place]:.2f}")
        for place, template in enumerate(templates)
    ]
    shares = ", ".join(f"{part} {100 * share:.0f} %" for part, share in explained(margins).items())
    lowest = f"lowest {margins.min():.2f}, mean {margins.mean():.2f}, {(margins < 0).sum()} of {margins.size} below 0"
    title = f"Margin of the least certain digit ({scale}); variance explained: {shares}; {lowest}"
    columns = ("wording", "its beginning with all endings", "its ending with all beginnings", "the wording itself")
    results.show(Table(title, columns, lines, 1), name)
    with figures.figure_at(results.file(f"{name}.png"), (7.2, 5.6)) as figure:
        axes = figure.subplots()
        image = axes.imshow(margins, cmap="viridis", aspect="auto")
        axes.set_xticks(range(len(endings)), [shorten(ending[::-1], 24, placeholder=" …")[::-1] for ending in endings])
        axes.tick_params(axis="x", rotation=60)
        axes.set_yticks(range(len(beginnings)), [shorten(part, 32, placeholder=" …") for part in beginnings])
        axes.set(xlabel="ending", ylabel="beginning", title=f"Margin of the least certain digit ({scale})")
        figure.colorbar(image, label="margin (logits)")


if __name__ == "__main__":
    main(sys.argv[1:])
