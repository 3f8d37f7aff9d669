"""Does one head of tuned SmolLM2 carry, or does it fetch digits? And do errors vanish when it is told the right carry?

    python experiments/smollm2_carry.py [output=checkpoints] [seeds=0,1,2] [pairs=50] [sums=100] [publish=true]

Trains configs/smollm2_adder.yaml with each seed. In each model, attribution of a few pairs names the heads to try, and
patching of the same pairs names the carry head. All else is measured on other pairs and sums, of 2-4 digits, in every
column that something is carried into, in NUPA's words and in others:

    patched     the head's output at q_k comes from a sum that differs in the carry alone, both ways: does it bring the
                carry about, and does it undo it?
    exchanged   the head's output at q_k comes from a sum that shares no digit, of the other carry or of the same: a
                head that carries changes the digit by the carry in the first case, and nothing in the second
    repaired    the head's output at every q_k becomes the mean of its outputs at that column for the true carry, for
                the false one, or for both together: which errors vanish, and which are made?

Leaves two tables in results/ beside the runs, or in experiments/results/ with
publish=true.
"""

# %%
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from lab.drawing.publishing import take_results
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.finetune import main as finetune
from lab.numbers.additions import addition
from lab.numbers.statistics import student_mean, wilson
from lab.probing.alignment import alignment
from lab.probing.attribution import attributions
from lab.probing.bridge import Hook, Subject, open_model
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE, Contrast
from lab.probing.interventions import heads as head_hook
from lab.probing.interventions import put, take
from lab.probing.pairs import Pairs, carry_only, cross_digit
from lab.probing.patching import Patch, patch
from lab.probing.positions import Sums
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_adder.yaml"
PROMPTS = {"NUPA's words": "", "other words": "What is {a} plus {b}? It is"}
CELLS = [(length, column) for length in (2, 3, 4) for column in range(1, length)]
DISCOVERY, TRIED, BATCH = 12, 8, 128
"""Pairs of each of two cells that the head is chosen with; heads that are patched; rows of a pass."""


# %% One model, and what it says at one column.
def batches(sums: Sums) -> Iterator[tuple[slice, Sums]]:
    for start in range(0, len(sums), BATCH):
        rows = slice(start, start + BATCH)
        yield rows, sums.part(rows)


@torch.inference_mode()
def said(subject: Subject, sums: Sums, hooks: dict[slice, list[Hook]] | None = None) -> np.ndarray:
    """The likeliest digit at each q_k, (B, K); -1 where it is no digit, and where nothing is asked."""
    digit_of = {token: digit for digit, token in enumerate(subject.writer.digit_ids())}
    found = []
    for rows, part in batches(sums):
        only_queries: Hook = ("unembed.hook_in", lambda stream, hook, at=part.query_at_BK: take(stream, at))
        logits_BKV = subject.logits(part, [*(hooks or {}).get(rows, []), only_queries])
        found.append([[digit_of.get(token, -1) for token in row] for row in logits_BKV.argmax(-1).tolist()])
    return np.where(sums.has_digit_BK.numpy(), np.concatenate(found), -1)


@torch.inference_mode()
def outputs(subject: Subject, sums: Sums, head: Component) -> torch.Tensor:
    """What the head hands on at each q_k, (B, K, Z)."""
    found = [
        take(subject.activations(part, [head.hook_point])[1][head.hook_point][:, :, head.head], part.query_at_BK)
        for _, part in batches(sums)
    ]
    return torch.cat(found)


def given(sums: Sums, head: Component, output_BKZ: torch.Tensor, columns: Sequence[int]) -> dict[slice, list[Hook]]:
    """Hooks that give a head these outputs at the queries of some columns."""
    hooks = {}
    for rows, part in batches(sums):
        at_BK, new_BKZ = part.query_at_BK[:, list(columns)], output_BKZ[rows][:, list(columns)]

        def change(z_BTHZ: torch.Tensor, at_BK: torch.Tensor = at_BK, new_BKZ: torch.Tensor = new_BKZ) -> torch.Tensor:
            z_BTHZ = z_BTHZ.clone()
            z_BTHZ[:, :, head.head] = put(z_BTHZ[:, :, head.head], at_BK, new_BKZ)
            return z_BTHZ

        hooks[rows] = [head_hook(head.layer, change)]
    return hooks


# %% Which head it is, from pairs for discovery alone.
def discover(subject: Subject) -> dict[str, list[float]]:
    """The heads that attribution names, each with its exact effect both ways, the strongest first."""
    named: Counter[str] = Counter()
    pairs = [carry_only(3, column, DISCOVERY, seed=1000) for column in (0, 1)]
    heads = [Component("head", layer, head) for layer in range(subject.layers) for head in range(subject.heads)]
    for some in pairs:
        guessed_BN = attributions(Contrast(subject, some), (EVERYWHERE,), 2 * DISCOVERY)[0]
        size_N = np.abs(guessed_BN[:, : len(heads)].reshape(len(guessed_BN), len(heads)).mean(0))
        named.update({str(head): float(size) for head, size in zip(heads, size_N, strict=True)})  # type: ignore[arg-type]
    tried = [Component.named(name) for name, _ in named.most_common(TRIED)]
    effects = np.mean([ways(subject, some, tried) for some in pairs], axis=0)
    order = np.argsort(-effects.mean(0))
    return {str(tried[place]): effects[:, place].tolist() for place in order}


def ways(subject: Subject, pairs: Pairs, heads: Sequence[Component]) -> np.ndarray:
    """Effect of each head at q_k, (ways, heads)."""
    patches = [Patch((head,), "q_k") for head in heads]
    return patch(subject, pairs, patches, "effect", {"head": list(map(str, heads))}, BATCH).effect.value


# %% Exchange between sums that share no digit.
def same_carry(length: int, column: int, count: int, seed: int) -> Pairs:
    """Pairs that share no digit of a column, and have the same carry into `column`."""
    one, other = (cross_digit(length, column, count, seed + add) for add in (0, 1))
    carry = [carry_into(numbers, column) for numbers in one.base]
    either = [
        base if carry_into(base, column) == c else source
        for c, base, source in zip(carry, other.base, other.source, strict=True)
    ]
    return Pairs(one.base, either, column)


def carry_into(numbers: tuple[int, int], column: int) -> bool:
    return sum(number % 10**column for number in numbers) >= 10**column


def exchanged(subject: Subject, pairs: Pairs, head: Component) -> Counter[str]:
    """What becomes of the digit, of pairs whose base is right."""
    base, source, k = subject.sums(pairs.base), subject.sums(pairs.source), pairs.column
    before_B = said(subject, base)[:, k]
    after_B = said(subject, base, given(base, head, outputs(subject, source, head), [k]))[:, k]
    own_B, theirs_B = base.columns.sum[:, k], source.columns.sum[:, k]
    step_B = 1 - 2 * base.columns.carry[:, k]
    counts: Counter[str] = Counter()
    for before, after, own, theirs, step in zip(before_B, after_B, own_B, theirs_B, step_B, strict=True):
        if before != own:
            continue
        kinds = {"as it was": own, "by a carry": (own + step) % 10, "by one, the wrong way": (own - step) % 10}
        kind = next((name for name, digit in kinds.items() if after == digit), "other")
        counts[kind] += 1
        counts["n"] += 1
        counts["the source's digit"] += int(after == theirs and theirs not in kinds.values())
    return counts


# %% Repair of errors.
def repaired(subject: Subject, head: Component, length: int, sums: int) -> Counter[str]:
    """Errors that vanish, and digits that are lost, with the mean output of the true carry, of the false, of both."""
    known, asked = (subject.sums(list(drawn(length, seed, sums))) for seed in (2000, 3000))
    output_BKZ, carry_BK = outputs(subject, known, head).float(), torch.from_numpy(known.columns.carry)
    has_BK, columns = known.has_digit_BK, range(1, length)
    means_KCZ = torch.stack(
        [torch.stack([output_BKZ[has_BK[:, k] & (carry_BK[:, k] == c), k].mean(0) for c in (0, 1)]) for k in columns]
    )
    truth_BK = torch.from_numpy(asked.columns.carry)[:, 1:length].long()
    place_K = torch.arange(length - 1)
    told = {"true carry": means_KCZ[place_K, truth_BK], "false carry": means_KCZ[place_K, 1 - truth_BK],
            "no carry": means_KCZ.mean(1).expand(len(asked), -1, -1)}  # fmt: skip
    right_BK, carries_BK = asked.columns.sum, asked.columns.carry
    other_BK = (right_BK + 1 - 2 * carries_BK) % 10
    before_BK = said(subject, asked)
    after = {}
    for name, new_BKZ in told.items():
        padded_BKZ = torch.cat([torch.zeros_like(new_BKZ[:, :1]), new_BKZ], 1)
        after[name] = said(subject, asked, given(asked, head, padded_BKZ, columns))
    counts: Counter[str] = Counter()
    for row in range(len(asked)):
        for k in columns:
            kind = {right_BK[row, k]: "right", other_BK[row, k]: "off by a carry"}.get(before_BK[row, k], "other error")
            counts[kind] += 1
            for name, found_BK in after.items():
                counts[f"{kind}, right with {name}"] += int(found_BK[row, k] == right_BK[row, k])
                counts[f"{kind}, off with {name}"] += int(found_BK[row, k] == other_BK[row, k])
    return counts


def drawn(length: int, seed: int, count: int) -> Iterator[tuple[int, int]]:
    """Uniform sums whose answers have as many digits, so that columns stand at the same tokens."""
    found = (addition("uniform", length, seed, index) for index in range(10 * count))
    numbers = ((int(one.a), int(str(one.b))) for one in found if len(one.answer) == length)
    return (pair for _, pair in zip(range(count), numbers, strict=False))


# %% All of one model.
def measure(run: Path, pairs: int, sums: int) -> dict[str, object]:
    subject = open_model(str(run))
    tried = discover(subject)
    head = Component.named(next(iter(tried)))
    found: dict[str, object] = {"head": str(head), "discovery": tried}
    looks = alignment(subject, {3: subject.sums(list(drawn(3, 4000, 32)))}, batch_size=32).attention
    found["looks at"] = {
        f"{number}{offset:+d}": float(looks.at(layer=head.layer, head=head.head, number=number, offset=offset).value[0])
        for number in ("a", "b", "sum") for offset in (-1, 0, 1)
    }  # fmt: skip
    for label, prompt in PROMPTS.items():
        subject = open_model(str(run), prompt)
        right, effects, other, same = {}, {}, Counter(), Counter()
        for length in (2, 3, 4):
            asked = subject.sums(list(drawn(length, 5000, sums // 2)))
            hits_BK = (said(subject, asked) == asked.columns.sum)[:, :length]
            right[length] = [float(hits_BK.mean()), float(hits_BK.all(1).mean())]
        for length, column in CELLS:
            some = carry_only(length, column - 1, pairs, seed=6000)
            effects[f"{length} {column}"] = ways(subject, some, [head])[:, 0].tolist()
            other += exchanged(subject, cross_digit(length, column, pairs, seed=7000), head)
            same += exchanged(subject, same_carry(length, column, pairs, seed=8000), head)
        found[label] = {"right": right, "effects": effects, "other carry": other, "same carry": same}
        print(run.name, label, json.dumps(found[label]), flush=True)
        if not prompt:
            found["repair"] = sum((repaired(subject, head, length, sums) for length in (2, 3, 4)), Counter())
            print(run.name, "repair", json.dumps(found["repair"]), flush=True)
    return found


results, arguments = exit_cleanly(take_results)(sys.argv[1:], ROOT / "experiments" / "results")
options = dict(part.split("=", 1) for part in arguments)
folder, seeds = Path(options.get("output", "checkpoints")), options.get("seeds", "0,1,2").split(",")
quiet_libraries()
found = {}
for seed in seeds:
    run = folder / f"smollm2_adder_{seed}"
    if not (run / "model").is_dir():
        finetune([str(CONFIG), f"name={run.name}", f"seed={seed}", f"output={folder}"])
    if not (run / "carry.json").is_file():
        measured = measure(run, int(options.get("pairs", 50)), int(options.get("sums", 100)))
        (run / "carry.json").write_text(json.dumps(measured, indent=1))
    found[seed] = json.loads((run / "carry.json").read_text())


# %% Two tables.
def share(counts: dict[str, int], kind: str, whole: str = "n") -> object:
    return percent(wilson(counts.get(kind, 0), counts[whole])) if counts.get(whole) else "no such digit"


def effect(parts: dict[str, list[float]], way: int) -> object:
    return percent(student_mean([both[way] for both in parts.values()], -10, 10))


rows = []
for seed, one in found.items():
    for label in PROMPTS:
        at = one[label]
        exact = ", ".join(f"{100 * right[1]:.0f}" for right in at["right"].values())
        rows.append((
            seed, label, exact, one["head"], effect(at["effects"], 0), effect(at["effects"], 1),
            share(at["other carry"], "by a carry"), share(at["other carry"], "as it was"),
            share(at["other carry"], "the source's digit"), share(at["same carry"], "as it was"),
        ))  # fmt: skip
columns = ("seed", "asked in", "exact at 2, 3, 4 digits", "head", "brings a carry about", "undoes one",
           "other carry: by a carry", "other carry: as it was", "other carry: the source's digit",
           "same carry: as it was")  # fmt: skip
results.show(
    Table("SmolLM2-135M tuned on sums of 2-4 digits: the carry head (%, 95 %)", columns, rows, 2), "smollm2_carry"
)

repairs = []
for seed, one in [
    *found.items(),
    ("all", {"repair": sum((Counter(one["repair"]) for one in found.values()), Counter())}),
]:
    for kind in ("right", "off by a carry", "other error"):
        told = [
            share(one["repair"], f"{kind}, right with {what}", kind)
            for what in ("true carry", "false carry", "no carry")
        ]
        wrong = share(one["repair"], f"{kind}, off with false carry", kind)
        repairs.append((seed, kind, str(one["repair"].get(kind, 0)), *told, wrong))
columns = (
    "seed",
    "digits",
    "n",
    "right with the true carry",
    "with the false carry",
    "with no carry",
    "off by a carry with the false one",
)
results.show(Table("Digits after the carry head is told a carry (%, 95 %)", columns, repairs, 3), "smollm2_repair")
