"""Does a head of tuned SmolLM2 hold the carry, or does it fetch the digits that make it?

    python -m experiments.smollm2_carry [seeds=0,1,2] [prompts=nupa] [lengths=2,3,4] [pairs=100]
                                        [table=smollm2_carry] [output=checkpoints] [key=value ...]

Tunes SmolLM2-135M on sums of 1-4 digits by configs/smollm2_sums.yaml, once for each seed. For each model and prompt:

    competence   exact match of 100 sums of 2 to 4 digits each, untouched and tuned
    discovery    for each length and each column into which something is carried, attributions rank all heads and MLPs
                 on 24 pairs, and the twelve largest are patched
    test         on other pairs, the three heads with the largest effect in discovery, and three other heads of
                 the same layers, are patched, both ways
    contents     what the first of the three heads holds, on other sums of three digits
                 (lab/probing/addition/head_contents.py)
    exchange     the effect of its carry direction alone, on the test pairs of three digits
    told         digits that are right if its coordinate is set to the true carry, or to the wrong one

With prompts=prose, sums are asked as "The sum of 12 and 34 is"; a model that is tuned in NUPA's wording alone gets few
of them right, so give data.templates=mixed, too. Other arguments go to `lab.finetune`. Measurements are kept beside
each model and are not repeated.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.shared.arguments import own_and_others, some_of, whole_number, whole_numbers
from experiments.shared.estimates import estimate, estimated, shown, value
from experiments.shared.heads import discovery, strongest
from experiments.shared.kept import Kept
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.sums import drawn
from experiments.shared.training import trained
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import Entry, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, wilson
from lab.probing.addition import head_contents
from lab.probing.addition.carries import CARRY_DIRECTIONS
from lab.probing.addition.pairs import carry_only
from lab.probing.addition.positions import Sums
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject, open_model
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import patching
from lab.probing.instruments.patching import Patch
from lab.probing.instruments.subspaces import Subspace
from lab.probing.interventions import said_digits
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_sums.yaml"
PROMPTS = {"nupa": "", "prose": "The sum of {a} and {b} is "}
DISCOVERY, SCREENED, TESTED = 24, 12, 3
LENGTH = 3
"""Digits of the sums on which contents are read."""
LEARNED, READ, TOLD = 400, 600, 300
NAMES = ("seeds", "prompts", "lengths", "pairs", "table", "output")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, *NAMES)
    output, pairs = given.get("output", "checkpoints"), whole_number(given, "pairs", 100)
    lengths = map(int, some_of(["2", "3", "4"], given.get("lengths"), "lengths", ","))
    prompts = some_of(PROMPTS, given.get("prompts", "nupa"), "prompts", ",")
    places = [(length, column) for length in lengths for column in range(1, length)]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for seed in whole_numbers(given, "seeds", "0,1,2"):
        own = [f"name=smollm2_sums_{seed}", f"seed={seed}", f"output={output}", "resume=true"]
        run = trained(load(FinetuneConfig, CONFIG, [*changes, *own]))
        for prompt in prompts:
            found[str(seed), prompt] = measured(run, prompt, places, pairs)
            show(found, results, given.get("table", "smollm2_carry"))


def measured(run: Path, prompt: str, places: Sequence[tuple[int, int]], pairs: int) -> dict[str, Any]:
    """All measurements of a model and prompt. Each part is measured only once. `places`: the digits of the numbers, and
    the column into which something is carried."""
    once, subject = Kept(run / f"carry_{prompt}.json").once, open_model(str(run), PROMPTS[prompt])
    ranked = [
        once(
            f"discovery {length} {column}",
            partial(discovery, subject, carry_only(length, column - 1, DISCOVERY, seed=1), SCREENED),
        )
        for length, column in places
    ]
    heads = [Component.named(name) for name in strongest(ranked, TESTED)]
    both, named = [*heads, *controls(subject, heads)], " ".join(map(str, heads))
    tests = {
        f"test {length} {column}": once(
            f"test {length} {column}, {pairs} pairs, {named}",
            lambda at=(length, column): tested(subject, *at, both, pairs),
        )
        for length, column in places
    }
    return tests | {
        "competence": once("competence", lambda: competence(subject)),
        "untouched": once("untouched", lambda: competence(open_model("smollm2-135m-instruct", PROMPTS[prompt]))),
        "inside": once(f"inside, nested, {pairs} pairs, {heads[0]}", lambda: inside(subject, heads[:1], pairs)),
    }


@torch.inference_mode()
def competence(subject: Subject) -> dict[str, int]:
    """How many of 100 sums of each length are right."""
    found = {}
    for length in (2, 3, 4):
        sums = drawn(subject, length, 5000, 100)
        exact = [part.read(subject.logits(part)).exact_B for part in map(sums.part, batches(len(sums), 50))]
        found[str(length)] = int(torch.cat(exact).sum())
    return found


def controls(subject: Subject, heads: Sequence[Component]) -> list[Component]:
    """Another head of the layer of each head."""
    draw = np.random.default_rng(0)
    taken = set(heads)
    found = []
    for one in heads:
        free = [Component("head", one.layer, head) for head in range(subject.heads)]
        chosen = [head for head in free if head not in taken]
        found.append(chosen[int(draw.integers(len(chosen)))])
        taken.add(found[-1])
    return found


def tested(subject: Subject, length: int, column: int, heads: Sequence[Component], pairs: int) -> dict[str, Any]:
    """The effect of each head, with its interval, on pairs that were not used in discovery."""
    patches = [Patch((head,), EVERYWHERE) for head in heads]
    test = carry_only(length, column - 1, pairs, seed=2)
    effect = patching.patch(subject, test, patches, "effect", {"patch": list(map(str, heads))}, 64).effect
    return {
        str(head): {way: estimate(effect.at(patch=str(head), carry=way)) for way in CARRY_DIRECTIONS} for head in heads
    }


def inside(subject: Subject, heads: Sequence[Component], pairs: int) -> dict[str, Any]:
    """Contents, exchange, and what happens if the head is told a carry, for sums of `LENGTH` digits."""
    columns = range(1, LENGTH)
    train, test = drawn(subject, LENGTH, 0, LEARNED), drawn(subject, LENGTH, LEARNED, READ)
    seen = head_contents.contents(subject, heads, columns, train, test)
    found: dict[str, Any] = {}
    for head in heads:
        for column in columns:
            direction = seen.directions[head, column]
            explained = seen.explained.at(head=str(head), column=column)
            steps = seen.steps.at(head=str(head), column=column)
            exchanged = head_contents.exchange(
                subject, carry_only(LENGTH, column - 1, pairs, seed=2), {head: direction}
            ).effect.at(head=str(head))
            found[f"{head} {column}"] = {
                "explained": {name: estimate(explained.at(reading=name)) for name in head_contents.READINGS},
                "nested": {
                    name: estimate(seen.nested.at(head=str(head), column=column, model=name))
                    for name in head_contents.NESTED
                },
                "steps": {str(carry): [value(number) for number in steps.at(carry=carry).value] for carry in (0, 1)},
                "exchange": {
                    part: {way: estimate(exchanged.at(part=part, carry=way)) for way in CARRY_DIRECTIONS}
                    for part in head_contents.PARTS
                },
                "told": told(subject, head, column, direction),
            }
    return found


@torch.inference_mode()
def told(subject: Subject, head: Component, column: int, direction: Any) -> dict[str, list[int]]:
    """Counts of right digits, of digits that are right except for a wrong carry, and of all digits: for the unchanged
    model, if the head is told the true carry, if it is told the wrong one, and if the wrong one is written along a
    random direction of its output. "slips mended": how many of the unchanged model's digits with a wrong carry the true
    carry corrects."""
    sums = drawn(subject, LENGTH, LEARNED + READ, TOLD)
    there = (sums.query_at_BK[:, column] >= 0).numpy()
    carry, digit = sums.columns.carry[:, column], sums.columns.sum[:, column]
    slipped = (digit + np.where(carry == 1, -1, 1)) % 10
    random = direction.elsewhere(0)
    answers = {
        "nothing": said_digits(subject, sums, column, lambda rows: []),
        "the true carry": digits_told(subject, sums, column, head, direction, carry),
        "the wrong carry": digits_told(subject, sums, column, head, direction, 1 - carry),
        "the wrong carry, elsewhere": digits_told(subject, sums, column, head, random, 1 - carry),
    }
    missed = there & (answers["nothing"] == slipped)
    counts = {
        name: [int((given == digit)[there].sum()), int((given == slipped)[there].sum()), int(there.sum())]
        for name, given in answers.items()
    }
    mended = int((answers["the true carry"] == digit)[missed].sum())
    return counts | {"slips mended": [mended, 0, int(missed.sum())]}


@torch.inference_mode()
def digits_told(
    subject: Subject, sums: Sums, column: int, head: Component, direction: Subspace, carry_N: np.ndarray
) -> np.ndarray:
    """The most likely digit at q_k (N,), if a head's coordinate is set to its mean for the carries `carry_N` (N,).

    If the rest of the model relies on the head, a wrong carry changes the digit of every sum, and the right carry
    corrects those errors that come from a wrong carry. `direction`: see `head_contents.Contents`.
    """
    query_B1, said_B1 = sums.query_at_BK[:, column, None], torch.from_numpy(carry_N)[:, None]

    def hooks(rows: slice) -> list[Hook]:
        return [head_contents.at_query(head, query_B1[rows], partial(direction.write, carry_BQ=said_B1[rows]))]

    return said_digits(subject, sums, column, hooks)


def show(found: dict[tuple[str, str], dict[str, Any]], results: Results, name: str) -> None:
    results.show(effects_table(found), name)
    results.show(inside_table(found), f"{name}_inside")
    draw_steps(found, results.file(f"{name}.png"))


def effects_table(found: dict[tuple[str, str], dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for (seed, prompt), known in found.items():
        for length, column in [map(int, name.split()[1:]) for name in known if name.startswith("test")]:
            effects = {name: larger(ways) for name, ways in known[f"test {length} {column}"].items()}
            names = list(effects)  # the heads of discovery, and as many controls
            heads, others = names[: len(names) // 2], names[len(names) // 2 :]
            second = max(heads[1:], key=lambda name: effects[name].value, default="")
            most = max(others, key=lambda name: effects[name].value)
            able = wilson(known["competence"][str(length)], 100)
            beside = (second, shown(effects[second])) if second else ("", "")
            lines.append((
                seed, prompt, f"{length}, {column}", percent(able),
                heads[0], shown(effects[heads[0]]), shown(smaller(known[f"test {length} {column}"][heads[0]])), *beside,
                shown(effects[most]),
            ))  # fmt: skip
    title = "The share of a carry that a head of tuned SmolLM2-135M brings about, % (95 %), the larger of both ways"
    heads = ("first", "effect", "the other way", "second", "effect", "controls")
    columns = ("seed", "prompt", "digits, column", "exact match", *heads)
    return Table(title, columns, lines, 4)


def larger(ways: dict[str, list[float]]) -> Estimate:
    return max(map(estimated, ways.values()), key=lambda one: one.value)


def smaller(ways: dict[str, list[float]]) -> Estimate:
    return min(map(estimated, ways.values()), key=lambda one: one.value)


def inside_table(found: dict[tuple[str, str], dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for (seed, prompt), known in found.items():
        for name, one in known["inside"].items():
            head, column = name.split()
            counts = one["told"]
            turned, elsewhere = counts["the wrong carry"], counts["the wrong carry, elsewhere"]
            mended = counts["slips mended"]
            lines.append((
                seed, prompt, head, column,
                *(shown(estimated(one["explained"][reading])) for reading in head_contents.READINGS),
                *(shown(estimated(one["nested"][model])) for model in head_contents.NESTED),
                *(shown(larger(one["exchange"][part])) for part in head_contents.PARTS),
                f"{turned[1]} of {turned[2]}", f"{elsewhere[1]} of {elsewhere[2]}", f"{mended[0]} of {mended[2]}",
            ))  # fmt: skip
    title = "What the first head holds at q_k in sums of three digits: explained shares, effects of parts, told carries"
    told_columns = ("turned by the wrong carry", "turned elsewhere", "slips mended")
    measured_columns = (*head_contents.READINGS, *head_contents.NESTED, *head_contents.PARTS)
    columns = ("seed", "prompt", "head", "column", *measured_columns, *told_columns)
    return Table(title, columns, lines, 4)


def draw_steps(found: dict[tuple[str, str], dict[str, Any]], path: Path) -> None:
    """The mean coordinate against the sum of the digits below, a panel for each model, a line for each carry from
    below."""
    shown = [(seed, prompt, name, one) for (seed, prompt), known in found.items()
             for name, one in known["inside"].items() if name.endswith(f" {LENGTH - 1}")]  # fmt: skip
    with figures.figure_at(path, (2.6 * max(2, len(shown)), 3)) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(shown), sharey=True))
        for axes, (seed, prompt, name, one) in zip(panels, shown, strict=True):
            for carry, steps in one["steps"].items():
                known = [(place, step) for place, step in enumerate(steps) if step > -9]
                axes.plot(*zip(*known, strict=True), marker="o", markersize=3, label=f"{carry} from below")
            axes.axvline(9.5, color="gray", linewidth=0.6)
            axes.set(title=f"seed {seed}, {prompt}, {name.split()[0]}", xlabel="sum of the two tens digits")
        panels[0].set_ylabel("carry coordinate")
        panels[0].legend()
        figures.headed(figure, "What a head's output says of the carry into the hundreds (0 without, 1 with)")


if __name__ == "__main__":
    main(sys.argv[1:])
