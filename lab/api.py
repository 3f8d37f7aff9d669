"""The Python API behind `lab.load`, `lab.problems`, `lab.evaluate` and `lab.probe`."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import ValidationError

from lab.benchmarks.benchmark import Benchmark, ask
from lab.benchmarks.length_curves.scoring import LengthCurves
from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.results import Sample, Scores, answered, facts, grouped
from lab.config.evaluation import EndpointConfig, EvaluateConfig, LocalEngineConfig, NupaConfig
from lab.config.notation import FormatConfig
from lab.config.schema import Section, chosen
from lab.engines.engine import GREEDY, Completion, Engine, NotatedEngine, Request, Sampling
from lab.engines.from_config import open_engine
from lab.engines.refusals import remedy
from lab.errors import ConfigError, LabWarning, ModelError, TaskError, mistakes
from lab.models import sources, swaps
from lab.numbers.representations import Integer
from lab.numbers.sampling import Cell, Problem, distinct_problems, posed, problem, task_of
from lab.numbers.tasks import KNOWN, SUM, Task
from lab.numbers.tasks import task as task_named
from lab.second_reading import engine as second_reading
from lab.text import formats

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from lab.probing.bridge import Subject
    from lab.probing.contrast import Contrasting
    from lab.probing.measured import Measured
    from lab.probing.report.circuit import Circuit

_Section = TypeVar("_Section", bound=Section)
OPERATORS = {"+": "add", "-": "sub", "*": "multiply", "/": "truediv", "//": "floordiv", "%": "mod"}
_QUESTION = re.compile(r"\s*([0-9./e]+)\s*(\+|-|\*|//|/|%)\s*([0-9./e]+)\s*=?\s*")
_SUM = re.compile(r"\s*(?:sum_integers\s+)?([0-9]+(?:\s*\+\s*[0-9]+)+)\s*=?\s*")
_NEGATIVE = re.compile(r"\s*([0-9./e]+)\s*-\s*([0-9./e]+)\s*=?\s*")
_WORDS = 64
"""Tokens that an answer in running text may have beside its number."""
_NAMED = re.compile(r"\s*([a-z_]+)\s*\(?\s*([0-9./e]+)\s*(?:,\s*([0-9./e]+))?\s*\)?\s*")


class Answer(NamedTuple):
    """What a model wrote after one question."""

    text: str
    """As it was written."""
    number: str
    """The number in it, in natural order and without padding; "" if there is none."""
    tokens: int
    """How many tokens were written."""
    cut: bool
    """Whether the text was cut off because it had become too long."""
    rewritten: bool = False
    """Whether the model writes numbers in another form than people do: ones digit first, or padded."""


@dataclass(frozen=True)
class Model:
    """A model that can be asked. `lab.load` makes one."""

    name: str
    engine: Engine
    benchmark: Callable[[Sequence[Problem]], Benchmark]
    """Makes the benchmark that asks the model given problems; it writes the prompts and scores the answers."""
    tasks: Sequence[Task]
    """The tasks that it can be asked: all 53, or those that a model from scratch was trained on."""
    description: str
    changed: Sequence[str] = ()
    """Changes made when it was loaded, such as parts.far_digits={"at_most": 5}."""
    sampling: Sampling = GREEDY
    """How its tokens are chosen."""
    caveat: str = ""
    """What it cannot do, in a sentence, if its training has changed how it continues any text."""

    def __repr__(self) -> str:
        return f"Model({self.name!r}: {self.description})"

    def ask(self, question: str) -> str:
        """The model's answer to one question; "" if it gives none, such as a whole number where a float is asked for.
        `answer` then has its text.

        Args:
            question: an expression such as "12 + 34", "1.5e3 * 2.0e1" or "3/4 + 1/4", or the name of a task with its
                operands, such as "max_integer 12, 34". A pretrained model continues any other text.

        Raises TaskError if a model with its own notation cannot read the question, and ModelError, with the endpoint's
        words, if it is behind an endpoint that does not answer.
        """
        answer = self.answer(question)
        return answer.text if read_question(question, self.tasks) is None else answer.number

    def answer(self, question: str) -> Answer:
        """Like `ask`, but returns the text as it was written, the number in it, and whether the text was cut off.

        A text may have 64 tokens more than the question has digits, so there is room for any sum or product.
        """
        asked = read_question(question, self.tasks)
        notated = isinstance(self.engine, NotatedEngine)
        if asked is not None:
            [sample] = evaluate(self, [asked]).samples
            completion, number = sample.completion, sample.reading.given or ""
        elif isinstance(self.engine, NotatedEngine):
            raise TaskError(_unreadable(question, self.tasks))
        else:
            request = Request(question, max_tokens=_WORDS + len(re.findall("[0-9]", question)))
            completion = next(iter(self.engine.generate([request], self.sampling)))[0]
            number = formats.written(self.engine.format, []).extract(completion.text, Integer, "loose") or ""
            number = re.sub(r"^0+(?=[0-9])", "", number)
        _check_answered(completion)
        rewritten = not notated and self.engine.format != FormatConfig()
        cut = completion.finish_reason == "length"
        return Answer(completion.text, number, completion.completion_tokens, cut, rewritten)


def _check_answered(completion: Completion) -> None:
    if reason := completion.api_error:
        raise ModelError("; ".join(filter(None, (f"the endpoint does not answer ({reason})", remedy(reason)))))


@dataclass(frozen=True)
class Evaluation:
    """What a model answered, and how good the answers are. `lab.evaluate` makes one."""

    model: str
    samples: Sequence[Sample]
    """In the order of the problems."""

    @property
    def scores(self) -> Mapping[tuple[str, int], Scores]:
        """Exact match, digit match and dlength by task and length, with their 95 % intervals (strict reading), over the
        questions that were answered."""
        cells = grouped(answered(self.samples), lambda sample: (sample.task, sample.length))
        return {cell: Scores.of([sample.reading for sample in cells[cell]]) for cell in sorted(cells)}

    def __repr__(self) -> str:
        lines = [f"{self.model}: {len(self.samples)} problems"]
        for (task, length), scores in self.scores.items():
            value, low, high = (100 * part for part in scores.exact_match[:3])
            lines.append(f"  {task}, {length} digits: {value:.0f} % right ({low:.0f}-{high:.0f})")
        return "\n".join(lines)

    def to_frame(self) -> "DataFrame":
        """A row for each problem: the question, the right answer, the answer given, and its scores."""
        from pandas import DataFrame

        return DataFrame([{**facts(sample.question), **sample.reading._asdict()} for sample in self.samples])

    def plot(self) -> "Figure":
        """Exact match against length, a line for each task, with its 95 % intervals."""
        from matplotlib.figure import Figure

        from lab.drawing.figures import COLORS, legend_in, line_with_band, say_if_empty

        figure = Figure(figsize=(6, 3.5), layout="constrained")
        axes = figure.subplots()
        for index, task in enumerate(dict.fromkeys(sample.task for sample in self.samples)):
            points = {length: scores.exact_match for (key, length), scores in self.scores.items() if key == task}
            line_with_band(axes, points, color=COLORS[index % len(COLORS)], label=task)
        axes.set(ylim=(-0.03, 1.03), xlabel="digits", ylabel="exact match", title=self.model)
        legend_in(axes)
        say_if_empty(axes)
        return figure


@dataclass(frozen=True)
class Probed:
    """What instruments found in a model. `lab.probe` makes one."""

    subject: "Subject"
    found: "Mapping[str, Sequence[Measured]]"
    """The arrays of each instrument."""

    @property
    def measured(self) -> "list[Measured]":
        """The arrays of all instruments."""
        return [array for arrays in self.found.values() for array in arrays]

    @property
    def verdicts(self) -> list[str]:
        """What was found, in sentences."""
        from lab.probing.report.verdicts import verdicts

        return [sentence for name, arrays in self.found.items() for sentence in verdicts(name, arrays)]

    @property
    def circuit(self) -> "Circuit":
        """The circuit of a carry, as far as it was measured: which heads attend to which digit, which components cause
        the carry, and which of them pass it on to which others. Needs alignment, patching and path_patching. Notebooks
        display it as a drawing."""
        from lab.probing.report.assembly import circuit

        return circuit(self.found)

    def __repr__(self) -> str:
        lines = [f"{self.subject.name}: {len(self.measured)} arrays", *self.verdicts, *map(repr, self.measured)]
        return "\n".join(lines)

    def __getitem__(self, name: str) -> "Measured":
        """The array of that name. Raises KeyError if there is none."""
        found = {array.name: array for array in self.measured}
        if name not in found:
            raise KeyError(f"there is no {name!r}; there are {', '.join(found)}")
        return found[name]

    def to_frame(self) -> "DataFrame":
        """A row for each value: the array's name, its labels, the value, its interval and its n."""
        from pandas import concat

        return concat([array.to_frame().assign(array=array.name) for array in self.measured], ignore_index=True)

    def plot(self) -> list[Any]:
        """A figure for each array."""
        return [array.plot() for array in self.measured]


def load(name: str, batch_size: int = 128, dtype: str = "float32", device: str = "auto", **others: Any) -> Model:
    """Loads any model by its name: a run directory of finetune, pretrain or adder, a folder of adapters or of a model,
    a name on the model hub, an embedded model, or one of the zoo (`lab list models`).

    Args:
        name: which model.
        batch_size: questions per forward pass.
        dtype: the dtype of a pretrained model's weights: float32, bfloat16 or auto.
        device: auto, cpu or cuda.
        others: `parts`, what to change in the parts of the loaded model, such as {"far_digits": {"at_most": 5}}
            (`lab.config.evaluation.LocalEngineConfig`). Saved weights stay as they are.

    Raises ModelError, in one line, if the model is not available or cannot be changed in this way, and ConfigError if a
    setting does not exist.
    """
    config = _checked(
        LocalEngineConfig, model={"name": name, "dtype": dtype, "device": device}, batch_size=batch_size, **others
    )
    engine, description = engine_of(config)
    changed = [f"parts.{kind}={keys}" for kind, keys in config.parts.items()]
    if isinstance(engine, NotatedEngine):
        return replace(_notated(name, engine), changed=changed)
    every = formats.writable(engine.format)
    wording = formats.written(engine.format, every)
    return Model(
        name, engine, lambda items: Nupa(items, wording), every, description, changed, caveat=caveat_of(name, engine)
    )


def caveat_of(name: str, engine: Engine) -> str:
    """What a tuned model cannot do, in a sentence: from its card, or because it has a graft. "" for other models."""
    return sources.caveat(Path(sources.resolve(name))) or swaps.caveat(swaps.swap_of(getattr(engine, "model", None)))


def _notated(name: str, engine: NotatedEngine) -> Model:
    """A model that is asked in its own notation."""
    notation = engine.notation
    return Model(name, engine, lambda items: LengthCurves(items, notation), notation.tasks, engine.size)


def engine_of(config: LocalEngineConfig | EndpointConfig) -> tuple[Engine, str]:
    """The engine that a config describes, and a text that says what it runs on. The model may also be a declared adder.

    Raises ModelError or ConfigError if it cannot be made.
    """
    if isinstance(config, LocalEngineConfig) and sources.is_adder(folder := Path(sources.resolve(config.model.name))):
        from lab.adders import asking  # only adders need it

        asking.check_parts(config)
        return asking.AdderEngine.of(folder), "cpu"
    if isinstance(config, LocalEngineConfig) and (found := second_reading.opened(config)):
        return found
    return open_engine(config)


def served(config: EvaluateConfig) -> Model:
    """The model that a config of `lab evaluate` names, asked as the config says. Use this for a model behind an
    endpoint, which `load` cannot open.

    Args:
        config: the config; its benchmark must be NUPA.

    Raises ConfigError for another benchmark, and ModelError if the engine cannot be made.
    """
    nupa = config.benchmark
    if not isinstance(nupa, NupaConfig):
        raise ConfigError(f"benchmark.kind={nupa.kind}: a model can be asked only with benchmark.kind=nupa")
    engine, description = engine_of(config.engine)
    name = config.model_name
    if isinstance(engine, NotatedEngine):
        return _notated(name, engine)
    wording = Nupa.from_config(nupa.model_copy(update={"problems_per_range": 1}), config.seed, engine.format).wording
    sampling = Sampling.of(config.sampling, config.seed)
    return Model(name, engine, lambda items: Nupa(items, wording), chosen(nupa.tasks), description, (), sampling)


def problems(task: str, digits: int, n: int = 100, seed: int = 0) -> list[Problem]:
    """`n` distinct test problems of one task and length, or all of them if there are fewer.

    The shortest numbers all belong to training, because there are too few of them to hold some out; a warning says so.
    Numbers longer than those of NUPA have no test split either, but training on NUPA's lengths never includes them.

    Args:
        task: its key, such as add_integer; `lab list tasks` shows all 53.
        digits: the length of the longest operand.
        n: how many problems.
        seed: the seed from which they are drawn.

    Raises TaskError for an unknown task, and if there is no number of so many digits.

    >>> problems("add_integer", digits=3, n=2)[0].answer
    '259'
    """
    found = task_named(task, KNOWN)
    if digits < 1:
        raise TaskError(f"digits={digits}: should be 1 or more")
    if digits < found.tested_lengths.start:
        shortest = f"{task} is tested from {found.tested_lengths.start} digits"
        warnings.warn(f"{shortest}; problems of {digits} may have been trained on", LabWarning, stacklevel=2)
    split = "test" if digits in found.tested_lengths else "train"
    return distinct_problems(Cell(found, digits), split, seed, n)


def evaluate(model: Model | str, problems: Sequence[Problem]) -> Evaluation:
    """Ask a model every problem, in memory, and score its answers.

    Args:
        model: a model that `load` returned, or its name.
        problems: as `problems` draws them.
    """
    asked = load(model) if isinstance(model, str) else model
    found = ask(asked.benchmark(problems), asked.engine, sampling=asked.sampling)
    samples = [sample for batch in found for sample in batch]
    return Evaluation(asked.name, sorted(samples, key=lambda sample: sample.index))


def probe(
    model: "Model | Subject | str",
    instruments: Sequence[str] | None = None,
    contrast: "Contrasting | None" = None,
    **settings: Any,
) -> Probed:
    """Open a model up and measure how it adds, or what makes it answer pairs of prompts differently.

    Args:
        model: a model that `load` returned, without changes to its attention, or its name; either way, it is loaded
            again, in float32. Or a bridge of your own, as a `Subject` from `Subject.from_bridge`.
        instruments: names such as alignment, patching or probes (`lab probe --help` lists them); alignment if not
            given, or patching for pairs of prompts.
        contrast: pairs of prompts to measure with instead of sums: `lab.probing.task_pairs.task_pairs("max_float",
            "comparison", 3, 32, 0)`, a `lab.probing.prompt_pairs.PromptPairs`, or any other contrast. The only setting
            is then `template`.
        settings: keys of the config's `sums`, such as template="{a} + {b} = " or pairs=64. `digits` is another name for
            `lengths`. If it is given, `trained` is its maximum, and `column` is by default 2, or 1 for numbers of fewer
            than four digits. Some instruments need a column below the highest, and so at least 3 digits.

    Raises ModelError if the model cannot be opened or measured in this way, and ConfigError if a setting does not
    exist.
    """
    from lab.adders.probing import opened
    from lab.probing import catalogue
    from lab.probing.addition.catalogue import INSTRUMENTS, Session
    from lab.probing.bridge import Subject
    from lab.probing.config import COMPETENCE, ProbeConfig

    own = model if isinstance(model, Subject) else None
    if contrast is not None and settings.keys() - {"template"}:
        raise ConfigError(
            f"{next(iter(settings.keys() - {'template'}))}: not for pairs of prompts, which say what is asked"
        )
    if own and "template" in settings:
        raise ConfigError("template: a bridge of your own has a prompt already; give it to Subject.from_bridge")
    if isinstance(model, Model) and model.changed:
        raise ModelError(f"{model.name}: loaded with {model.changed[0]}, but a model is probed as it was saved")
    if not isinstance(model, Model | Subject | str):
        what = "a model of lab.load, its name, or a Subject; a bridge becomes one by Subject.from_bridge"
        raise ModelError(f"{type(model).__name__}: should be {what}")
    name = model if isinstance(model, str) else model.name
    sums = {"lengths" if key == "digits" else key: value for key, value in settings.items()}
    if "lengths" in sums:
        given = sums["lengths"]
        if not isinstance(given, Sequence) or not given or not all(isinstance(one, int) for one in given):
            raise ConfigError(f"digits={given!r}: should be a list of one or more lengths, such as [2, 3]")
        sums.setdefault("trained", max(sums["lengths"]))
        # in column 1, a carry cannot be distinguished from a sum of digits (`illusion`)
        sums.setdefault("column", 2 if sums["trained"] >= 4 else 1)
    chosen = list(instruments or ("alignment" if contrast is None else "patching",))
    if contrast is not None and (unknown := [one for one in chosen if one not in catalogue.INSTRUMENTS]):
        raise ConfigError(f"{unknown[0]} takes no pairs; instruments of pairs: {', '.join(catalogue.INSTRUMENTS)}")
    config = _checked(ProbeConfig, name="session", subject=name, instruments=chosen, sums=sums)
    if not own and config.sums.template and sources.is_scratch(Path(sources.resolve(name))):
        raise ConfigError(f"template: {name} is a model from scratch, which is asked in its own notation: leave it out")
    subject = own or opened(name, config.sums.template)
    if contrast is not None:
        session_of_pairs = catalogue.ContrastSession(subject, contrast, config.batch_size)
        return Probed(subject, {name: catalogue.INSTRUMENTS[name](session_of_pairs) for name in (COMPETENCE, *chosen)})
    session = Session(subject, config)
    return Probed(session.subject, {name: INSTRUMENTS[name](session) for name in (COMPETENCE, *config.instruments)})


def _checked(kind: type[_Section], **values: Any) -> _Section:
    """A section of a config. Raises ConfigError, in one line, for a value that is not allowed."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(mistakes(error)[0]) from None


def read_question(text: str, tasks: Sequence[Task]) -> Problem | None:
    """The problem of one of these tasks that a text asks; None if it asks none.

    >>> read_question("12 + 34", [task_named("add_integer")]).answer
    '46'
    """
    if SUM in tasks and (found := _SUM.fullmatch(text)):
        return _problem(SUM, found.groups())
    if found := _QUESTION.fullmatch(text):
        names, operands = (OPERATORS[found[2]],), (found[1], found[3])
    elif found := _NAMED.fullmatch(text):
        names, operands = (found[1],), tuple(part for part in found.groups()[1:] if part is not None)
    else:
        return None
    for task in tasks:
        fits = task.key in names or task.name.removesuffix("_easy").removesuffix("_hard") in names
        if fits and (problem := _problem(task, operands)):
            return problem
    return None


def _unreadable(question: str, tasks: Sequence[Task]) -> str:
    """Why a model from scratch cannot read a question, in one line."""
    first = tasks[0]
    example = problem(Cell(first, first.tested_lengths.start), "test", 0, 0)
    operands = ", ".join(filter(None, (example.a, example.b)))
    names = ", ".join(task.key for task in tasks)
    what = f"{question!r}: this model from scratch reads only {names}, such as {first.key} {operands}"
    plain = re.sub(r"(?<=[0-9])[,_ '](?=[0-9]{3}\b)", "", question)
    if found := _NEGATIVE.fullmatch(question):
        swapped = f"{found[2]} - {found[1]}"
        if read_question(swapped, tasks):
            return f"{what}; a difference should not be negative"
    if plain != question and read_question(plain, tasks):
        return f"{what}; write numbers without separators: {plain.strip()}"
    if other := read_question(question, [task for task in KNOWN.values() if task is not SUM]):
        return f"{what}; this asks for {task_of(other).key}"
    return what


def _problem(task: Task, operands: Sequence[str]) -> Problem | None:
    if len(operands) != (2 if task.second else 1):
        return None
    length = max((len(digits) for text in operands for digits in re.findall("[0-9]+", text)), default=0)
    return posed(task, operands[0], operands[1] if task.second else None, length)
