"""A pretrained model tuned on sums of 1-8 digits: how long may numbers be, in words that it was never asked in?

    python -m experiments.graft ["rows=graft;plain"] [seeds=0] [digits=8,20,50,100x48,1000x12] [problems=96]
                                [output=checkpoints] [words=held_out] [bound=0] [spacing=0] [measure=true]
                                [perplexity=true] [together=12000] [table=graft] [key=value ...]

Trains configs/smollm2_graft.yaml, or smollm2_graft_as_written.yaml, with the changes of each row (see ROWS), one seed
after the other; other arguments go to `lab.finetune`. Then asks every tuned model for sums of each stratum
(lab/numbers/additions.py) and length, greedily, by the lab's own engine, in the held-out words of
lab/text/templates.py in turn. Other words: words=validation for those with which designs are compared; words=fresh for
those of which no mistake has suggested a design; words=nupa for NUPA's own, in which "as written" is trained.
digits=100x48 means 48 sums of 100 digits in each stratum; without a number, `problems` sums are asked. With spacing=3,
numbers are evenly spaced in the test, however the model was trained; bound=32 bounds the weight of far digits in the
test. The first numbers of a batch have at most `together` digits in all (a GPU has room for ten times as many). Also
measures the perplexity of docstrings of Python's library, unless perplexity=false. Measurements are kept beside each
model and are not repeated; measure=false neither trains nor asks, and shows what is known. Shows exact match (95 %
over seeds and problems) by stratum and by wording; leaves tables and a figure.
"""

import hashlib
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from experiments.shared.arguments import (
    counts,
    one_of,
    own_and_others,
    some_of,
    true_or_false,
    whole_number,
    whole_numbers,
)
from experiments.shared.kept import Kept
from experiments.shared.publishing import Results, beside_runs, printed
from experiments.shared.showing import looks
from experiments.shared.training import trained
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.config.schema import ModelConfig
from lab.drawing import figures
from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table
from lab.engines.engine import Request
from lab.engines.local import LocalEngine
from lab.errors import ConfigError, exit_cleanly
from lab.models import loading
from lab.models.swaps import swap_of
from lab.numbers.additions import STRATA, addition
from lab.numbers.representations import Integer
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.numbers.tasks import task
from lab.progress import quiet_libraries
from lab.text.answers import READINGS
from lab.text.docstrings import HELD_OUT as DOCUMENTED
from lab.text.docstrings import TRAINING, docstrings
from lab.text.formats import TextFormat
from lab.text.templates import FRESH, HELD_OUT, VALIDATION, worded

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_graft.yaml"
PLAIN = "parts={coupled: null, walk: null}"
NO_PASSAGES = "data.passages=0"
NEAREST = "parts.coupled.words=nearest"
EARLIER = [NO_PASSAGES, "data.variation.nines=0.1", "training={batch_size: 16, micro_batch_size: 16}"]
MORE = ["training={max_steps: 240, batch_size: 128, micro_batch_size: 128}", "data.variation.nines=0.25"]
PROSE = ["data={templates: many, passages: 0.5}", "training={batch_size: 64, micro_batch_size: 64}"]
REPLAY = "training.replay={tokens: 96, weight: 0.5}"
FADING = "parts.coupled={words: all, far: fading}"
ONE_WORD_FADING = "parts.coupled={words: nearest, far: fading}"
SPACED = "parts.even_spacing.distance=3"
NOT_TOLD = "parts.walk.loss_weight=0"
LONGER = "training={max_steps: 480, batch_size: 104, micro_batch_size: 104, evaluate_every: 120}"
DRAWN = "data.example_number=drawn"
MIXED = ["data.templates=mixed", "training={batch_size: 32, micro_batch_size: 32}"]
MORE_PROSE = "training={batch_size: 96, micro_batch_size: 96, evaluate_every: 200}"
VARIED = "data.templates=varied"
UNPADDED = "format={reverse: total, pad: none, carry_place: false}"
AS_WRITTEN = {
    "as written": [],
    "as written, in prose": [*PROSE, REPLAY],
    "as written, in prose, evenly spaced": [*PROSE, REPLAY, SPACED],
    "as written, in prose, mended": [*PROSE, REPLAY, SPACED, DRAWN, MORE_PROSE],
    "as written, in prose, mixed": [*PROSE, REPLAY, SPACED, DRAWN, *MIXED],
    "as written, in prose, varied": [*PROSE, REPLAY, SPACED, DRAWN, MORE_PROSE, VARIED],
    "as written, in prose, far digits fade": [*PROSE, REPLAY, SPACED, DRAWN, *MIXED, FADING],
    "as written, in prose, far digits fade, nearest word": [*PROSE, REPLAY, SPACED, DRAWN, *MIXED, ONE_WORD_FADING],
    "as written, not told where to stop": [NOT_TOLD],
    "as written, no walk": ["parts.walk=null"],
    "as written, plain": [PLAIN],
    "as written, far digits fade": [FADING],
    "as written, example drawn": [DRAWN],
    "as written, more sums": [LONGER],
    "as written, no positions": ["parts={coupled: null, walk: null, nope: {}}"],
    "plain, all reversed": [PLAIN, UNPADDED],
    "same place, all reversed": ["parts={coupled: null, walk: null, same_place: {}}", UNPADDED],
}
"""Rows of configs/smollm2_graft_as_written.yaml: nothing is reversed. Walking heads are told where to stop, or are not,
or there are none; there is no graft ("plain"). "In prose", there are twice as many sums, 25,600; they are asked in many
wordings, half of them after a passage of text, and ordinary text is mixed into the training. If numbers are "evenly
spaced", attention to digits does not depend on how many words stand between them. "More sums" are 49,920.
If "far digits fade", nothing is hidden: each head learns a slope by which far digits count less.
With "example drawn", the example number in the instruction is drawn anew for every eight sums, or is a word.
"In prose, mended" has all of this: 38,400 sums, evenly spaced, with the example drawn. In "mixed", which has 12,800,
half of the sums are asked in NUPA's words; "in prose, far digits fade" is "mixed" with nothing hidden, or, with
"nearest word", with nothing hidden but words: digits see one word before their number, as in "mixed". "Varied" is like
"mended", but a third of the sums are asked in NUPA's words, and a third have random words before, between and after the
numbers.
Rivals: no position ids, nothing reversed; and all numbers written ones digit first and unpadded, without a graft, or
with nothing but the bias of places (`parts.same_place`)."""
ROWS = {
    **AS_WRITTEN,
    "graft": [],
    "plain, same sums": [PLAIN],
    "graft, no passages": [NO_PASSAGES],
    "graft, nearest word": [NEAREST],
    "graft, nearest word, no passages": [NEAREST, NO_PASSAGES],
    "graft, three digits": [NEAREST, "data.lengths={hard: [1, 3], easy: [1, 3]}"],
    "graft, fewer sums": EARLIER,
    "graft, more sums": [*EARLIER, *MORE],
    "graft, no words": [*EARLIER, "parts.coupled.words=none"],
    "graft, all words": [*EARLIER, "parts.coupled.words=all"],
    "graft, far digits seen": [*EARLIER, "parts.coupled={words: all, far: seen}"],
    "graft, far digits fade": [*EARLIER, FADING],
    "plain": [*EARLIER, PLAIN],
}
"""The changes to the config for each row. Half of the 12,800 sums follow a passage of text, or none does ("no
passages"). "Plain, same sums" is trained on the same sums without a graft. An answer sees the words of its question
through the last one before it; with "nearest word", so do the numbers of the question. "Three digits" is trained on
sums of at most three digits, with "nearest word".

The other rows have no passages. "Fewer sums" are 6,400, a tenth of them with nines; "more sums" are 30,720, a quarter
of them with nines. Like "fewer sums", except for one thing each: digits see no words or all of them; far digits are
seen, and `bound` limits their weight, only in the test, so that all of them together weigh at most as much as `bound`
of them (`parts.coupled.far_at_most`); far digits are seen, but fade with every place, at a rate that each head
learns; there is no graft ("plain")."""
SHOWN_AS = {
    "as written, more sums": "walk, told where to stop",
    "as written": "walk, told where to stop, 12,800 sums",
    "as written, not told where to stop": "walk, not told",
    "as written, no walk": "no walk",
    "as written, plain": "no graft",
    "plain, all reversed": "no graft, all reversed",
    "same place, all reversed": "same-place bias, all reversed",
    "graft": "trained on 1-8 digits",
    "graft, three digits": "trained on 1-3 digits",
    "graft, all words": "answers see all words",
    "plain": "no graft",
}
"""The names of rows in figures, if they are others there."""
SURPLUS = 12
"""Tokens beyond the digits of a number: words before the sum, the end."""
PASSAGES, PASSAGE = 64, 256
"""Passages of documentation: how many, and how many tokens each has."""
WORDS = {"held_out": HELD_OUT, "validation": VALIDATION, "fresh": FRESH, "nupa": ()}
"""The templates that sums are asked in, by name; NUPA's own words need none."""
READ_AS = dict(zip(("right", "loose"), READINGS, strict=True))
"""How answers are read, by the name under which they are kept."""
TRAINED, TRAINED_AS_WRITTEN = 8, 6
"""Digits of the longest numbers in training."""
TOGETHER = 12_000
DIGITS = "8,20,50,100x48,1000x12"


class InTest(NamedTuple):
    """What may be set for the test alone."""

    bound: int = 0
    """The limit of the weight of far digits; 0 for none."""
    spacing: int = 0
    """The spacing of numbers; 0 for that of the training."""

    def __str__(self) -> str:
        """What is set, such as " spacing 3"; empty if nothing is."""
        return "".join(f" {name} {value}" for name, value in self._asdict().items() if value)


AS_TRAINED = InTest()
OWN = ("rows", "seeds", "digits", "problems", "output", "words", "measure", "perplexity", "together", "table")
OWN += InTest._fields


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, *OWN)
    rows = some_of(ROWS, given.get("rows", "graft;plain"), "rows", ";")
    seeds, output = whole_numbers(given, "seeds", "0"), Path(given.get("output", "checkpoints"))
    lengths = counts(given, "digits", DIGITS, whole_number(given, "problems", 96))
    asked_for = true_or_false(given, "measure", True)
    read = true_or_false(given, "perplexity", asked_for)
    words = one_of(WORDS, given, "words", "held_out")
    in_test = InTest(*(whole_number(given, key, usual) for key, usual in AS_TRAINED._asdict().items()))
    together = whole_number(given, "together", TOGETHER)
    measured: dict[str, list[Measured]] = {}
    untouched = Measured(output / "graft_untouched", load(FinetuneConfig, CONFIG, changes).model.name)
    for seed in seeds:
        for row in rows:
            config = configured(row, seed, output, changes)
            if not asked_for and config.run_status() != "finished":
                continue
            one = Measured(trained(config), "", words, in_test, together)
            for length, count in lengths.items() if asked_for else ():
                one.ask(length, count)
            if not any(one.knows(*asked) for asked in lengths.items()):
                continue
            measured.setdefault(row, []).append(one)
            notes = perplexities(untouched, measured) if read else ""
            show(measured, lengths, notes, results, given.get("table", "graft"))
    if not measured:
        raise ConfigError(f"measure=false: nothing of this is known in {output}")


def configured(row: str, seed: int, output: Path, changes: Sequence[str]) -> FinetuneConfig:
    name = f"{row.replace(', ', '-').replace(' ', '-')}_{seed}"
    changes = [*ROWS[row], *changes, f"name={name}", f"output={output}", f"seed={seed}", "resume=true"]
    return load(FinetuneConfig, CONFIG.with_stem("smollm2_graft_as_written") if row in AS_WRITTEN else CONFIG, changes)


class Measured:
    """The measurements of one tuned model: `ask` and `perplexity` measure what is not known, the rest only reads."""

    def __init__(
        self,
        folder: Path,
        model: str = "",
        words: str = "held_out",
        in_test: InTest = AS_TRAINED,
        together: int = TOGETHER,
    ) -> None:
        """Reads what is known.

        Args:
            folder: where measurements are kept.
            model: the name of the model; the model of the run in `folder` if not given.
            words: one of WORDS.
            in_test: what is set for the test alone.
            together: the largest number of digits of first numbers in a batch.
        """
        self.words, self.in_test, self.together = words, in_test, together
        self.kept, self.model = Kept(folder / "graft.json"), model or str(folder)
        self._loaded: Any = None

    def ask(self, length: int, problems: int) -> None:
        """Ask those of the sums of each stratum that have not been asked."""
        names = {stratum: self._name(length, stratum, problems) for stratum in STRATA}
        missing = [stratum for stratum in names if not self._kept(length, stratum, problems)]
        for stratum, found in self._asked(length, missing, problems).items() if missing else ():
            self.kept.keep(names[stratum], found, brief)

    def right(self, length: int, stratum: str, problems: int) -> list[int]:
        """For each sum, 1 if it comes at once."""
        found = self._kept(length, stratum, problems)
        assert found, f"not asked: {stratum} sums of {length} digits"
        return found["right"][:problems]

    def _kept(self, length: int, stratum: str, problems: int) -> dict[str, Any] | None:
        """What is known of these problems, perhaps with more of the same stream; None if they were not asked."""
        parts = [part.split(" ") for part in self.kept.known]
        mine = self._name(length, stratum, problems).split(" ")
        more = [part for part in parts if part[:2] + part[3:] == mine[:2] + mine[3:] and int(part[2]) >= problems]
        return self.kept.known[" ".join(min(more, key=lambda part: int(part[2])))] if more else None

    def _name(self, length: int, stratum: str, problems: int) -> str:
        templates = WORDS[self.words]  # measurements in words that have been changed since do not count
        changed = f"-{hashlib.sha256(repr(templates).encode()).hexdigest()[:8]}" if templates else ""
        return f"{length} {stratum} {problems} {self.words}{changed}{self.in_test}"

    def knows(self, length: int, problems: int) -> bool:
        """Whether this length is measured in every stratum."""
        return all(self._kept(length, stratum, problems) for stratum in STRATA)

    def share(self, length: int, stratum: str, problems: int) -> float:
        """The share of sums that are right at once."""
        return sum(self.right(length, stratum, problems)) / problems

    def perplexity(self) -> dict[str, float]:
        return self.kept.once(f"perplexity of unseen text{self.in_test}", lambda: perplexity(*self._model()), brief)

    def _model(self) -> Any:
        if not self._loaded:
            self._loaded = loading.load(ModelConfig(name=self.model))
            if self.in_test.bound:
                loading.change_parts(self._loaded[0], {"coupled": {"far_at_most": self.in_test.bound}})
            if self.in_test.spacing:
                loading.change_parts(self._loaded[0], {"even_spacing": {"distance": self.in_test.spacing}})
        return self._loaded

    def _asked(self, length: int, strata: Sequence[str], problems: int) -> dict[str, dict[str, Any]]:
        """Whether each problem of each stratum is answered right. "right": the sum comes at once. "loose": the first
        number that is written is the sum. "seconds": the time that the problems of all these strata took together."""
        model, tokenizer = self._model()
        written = TextFormat(swap_of(model).format, [task("add_integer")])
        drawn = [
            (stratum, index, addition(stratum, length, 0, index)) for stratum in strata for index in range(problems)
        ]
        words = WORDS[self.words]
        plain = [written.example(problem) for _, _, problem in drawn]
        asked = [
            worded(words[index % len(words)], example) if words else example
            for (_, index, _), example in zip(drawn, plain, strict=True)
        ]
        engine = LocalEngine(model, tokenizer, max(1, self.together // length))
        began, answers = time.perf_counter(), [""] * len(drawn)
        for answered in engine.generate([Request(item.prompt, length + SURPLUS) for item in asked]):
            for place, completion in answered.items():
                answers[place] = completion.text
        seconds = round(time.perf_counter() - began)
        found = {stratum: {**{name: [] for name in READ_AS}, "seconds": seconds} for stratum in strata}
        for (stratum, _, problem), text in zip(drawn, answers, strict=True):
            for name, reading in READ_AS.items():
                found[stratum][name].append(int(written.extract(text, Integer, reading) == problem.answer))
        return found


def brief(found: dict[str, Any]) -> str:
    if "right" in found:
        return f"{sum(found['right'])}, loose {sum(found['loose'])}, of {len(found['right'])}, {found['seconds']} s"
    return str(found)


@torch.inference_mode()
def perplexity(model: Any, tokenizer: Any) -> dict[str, float]:
    """The perplexity of passages of documentation, and of those among them without a digit."""
    tokens = tokenizer.encode(docstrings(DOCUMENTED, besides=TRAINING), add_special_tokens=False)
    total = {"all": 0.0, "without digits": 0.0}
    count = dict.fromkeys(total, 0)
    for start in range(0, min(len(tokens) - PASSAGE, PASSAGES * PASSAGE), PASSAGE):
        ids = torch.tensor([tokens[start : start + PASSAGE]], device=model.device)
        logits = model(input_ids=ids).logits[0, :-1].float()
        lost = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        plain = not any(digit in tokenizer.decode(ids[0]) for digit in "0123456789")
        for name in ("all", *["without digits"] * plain):
            total[name] += lost
            count[name] += PASSAGE - 1
    return {name: math.exp(total[name] / max(1, count[name])) for name in total} | {"tokens": count["all"]}


def perplexities(untouched: Measured, measured: dict[str, list[Measured]]) -> str:
    """A line with the perplexity of each seed: of all passages, and in brackets of those without a digit."""

    def said(one: Measured) -> str:
        found = one.perplexity()
        return f"{found['all']:.2f} ({found['without digits']:.2f})"

    found = {"untouched": [untouched], **measured}
    lines = [f"{row} {', '.join(map(said, models))}" for row, models in found.items()]
    return f"Perplexity of docstrings of Python's library (of those without a digit): {'; '.join(lines)}."


def show(
    measured: dict[str, list[Measured]], lengths: Mapping[int, int], notes: str, results: Results, name: str
) -> None:
    lines: list[tuple[Entry, ...]] = []
    curves: dict[str, dict[int, Estimate]] = {}
    for row, models in measured.items():
        for length, count in lengths.items():
            asked = [one for one in models if one.knows(length, count)]
            shares = {stratum: [one.share(length, stratum, count) for one in asked] for stratum in STRATA}
            if asked:
                cells = [
                    Shown(seeds_proportion(of_seeds, count), "{:.1f} ({:.1f}-{:.1f})", 100)
                    for of_seeds in shares.values()
                ]
                lowest = min(min(of_seeds) for of_seeds in shares.values())
                lines.append((row, str(len(asked)), str(length), str(count), *cells, f"{100 * lowest:.1f}"))
                means = [sum(of_strata) / len(STRATA) for of_strata in zip(*shares.values(), strict=True)]
                curves.setdefault(row, {})[length] = seeds_proportion(means, count * len(STRATA))
    first = next(iter(measured.values()))[0]
    words, in_test = first.words, first.in_test
    named = {"nupa": "NUPA's"}.get(words, words.replace("_", "-"))
    title = f"SmolLM2-135M tuned on short sums: exact match in {named} words{in_test} (%, 95 %), n a seed and stratum"
    table = Table(title, ("row", "seeds", "digits", "n", *STRATA, "lowest seed"), lines, 4)
    printed(table)
    print(notes)
    results.file(f"{name}.md").write_text(f"{title}\n\n{table.markdown()}\n{notes}\n")
    if words != "nupa":
        results.show(by_wording(measured, lengths), f"{name}_wordings")
    draw(curves, results.file(f"{name}.png"))


def by_wording(measured: dict[str, list[Measured]], lengths: Mapping[int, int]) -> Table:
    """How many sums are right in each wording, over all strata and seeds."""
    lines: list[tuple[Entry, ...]] = []
    for row, models in measured.items():
        words = WORDS[models[0].words]
        found = {length: [one for one in models if one.knows(length, count)] for length, count in lengths.items()}
        for place, wording in enumerate(words):
            cells = []
            for length, count in lengths.items():
                right = [
                    answer
                    for one in found[length]
                    for stratum in STRATA
                    for answer in one.right(length, stratum, count)[place :: len(words)]
                ]
                cells.append(f"{sum(right)} of {len(right)}" if right else NOT_MEASURED)
            lines.append((row, wording.replace("\n", "⏎"), *cells))
    return Table("Sums that are right, by wording and digits", ("row", "wording", *map(str, lengths)), lines, 2)


def draw(curves: Mapping[str, Mapping[int, Estimate]], path: Path) -> None:
    """Exact match of all strata together against digits, on one axis."""
    trained = TRAINED_AS_WRITTEN if {*curves} <= {*AS_WRITTEN} else TRAINED
    with figures.figure_at(path, (6.4, 3.4)) as figure:
        axes = figure.subplots()
        axes.axvspan(1, trained, color="0.92", lw=0)
        axes.text(trained / 2.8, 0.5, "trained", ha="center", color="0.4")
        for look, (row, points) in zip(looks(), curves.items(), strict=False):
            figures.line_with_band(axes, points, label=SHOWN_AS.get(row, row), **look)
        axes.set(xscale="log", xlim=(1, 1.2 * max(map(max, curves.values()))), ylim=(-0.03, 1.03))
        places = sorted({1, trained, *(length for points in curves.values() for length in points)})
        axes.set_xticks(places, labels=map(str, places), minor=False)
        axes.minorticks_off()
        axes.set(xlabel="digits of the longer number", ylabel="exact match")
        axes.set_title("Sums, SmolLM2-135M tuned on short ones")
        if len(curves) > 1:
            figures.legend_below(figure, 3)


if __name__ == "__main__":
    main(sys.argv[1:])
