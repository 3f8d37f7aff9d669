"""Ask any model one question, or several, one after the other.

    lab ask MODEL QUESTION [key=value ...]   answer one question
    lab ask MODEL [key=value ...]            read questions, one per line, up to an empty line

MODEL is a run directory of finetune, pretrain or adder, a folder, a name on the model hub, an embedded model, one of
the zoo (`lab list models`), or a config of evaluate, such as nupa_endpoint for a model behind an endpoint. QUESTION is
an expression such as "12 + 34", or the name of a task with its operands, such as "max_integer 12, 34"; a pretrained
model continues any other text.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lab.command import entry_point, find_config, is_config, read_config, read_options
from lab.config.commands import command_of
from lab.config.loading import keys_of
from lab.config.schema import Section
from lab.errors import ConfigError, LabError, TaskError

if TYPE_CHECKING:
    from lab.api import Answer, Model


class AskOptions(Section):
    """How the model is loaded, and what is shown."""

    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    """The dtype of a pretrained model's weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    attention: bool = False
    """Show which digit each head attends to while the answer is written; for sums of two integers."""


@entry_point
def main(arguments: list[str]) -> None:
    words, options = read_options(AskOptions, arguments, "lab ask", __doc__ or "", "MODEL [QUESTION]")
    if not words:
        raise ConfigError('give a model and a question, such as: lab ask smollm2-135m-instruct "12 + 34"')
    if options.attention and is_config(words[0]):
        raise ConfigError("attention=true needs a model or a run, not an evaluation config")
    from lab.progress import announced, quiet_libraries

    with announced(f"loading {words[0]}, and torch and transformers with it ..."):
        quiet_libraries()  # before the libraries are imported, because some of them print on import
        model = opened(words[0], options)
    look = attention(words[0]) if options.attention else None
    if len(words) > 1:
        answer(model, " ".join(words[1:]), look)  # the shell has divided a question without quotes
        return
    for question in questions():
        try:
            answer(model, question, look)
        except LabError as error:
            print(error)


def opened(name: str, options: AskOptions) -> "Model":
    """The model of a name, or of a config of `lab evaluate`."""
    from lab import api

    if not is_config(name):
        return api.load(name, dtype=options.dtype, device=options.device)
    from lab.config.evaluation import EvaluateConfig

    if given := sorted(options.model_fields_set & {"dtype", "device"}):
        raise ConfigError(f"{given[0]}: a config of evaluate says this itself, in engine.model")
    if (command := command_of(keys_of(find_config(name)))) != "evaluate":
        makes = command in ("finetune", "pretrain", "adder")
        then = f"; to ask the model that it makes, give {Path('checkpoints', Path(name).stem)}" if makes else ""
        raise ConfigError(f"{name}: a config of {command}, not of evaluate{then}")
    return api.served(read_config(EvaluateConfig, [name], "lab ask", ""))


def questions() -> Iterator[str]:
    """The lines of the terminal or of a pipe, up to the first one that is empty."""
    while True:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)
        line = sys.stdin.readline().strip()
        if not line:
            return
        yield line


def answer(model: "Model", question: str, look: Callable[[int, int], None] | None) -> None:
    """Print the answer and whether it is right. `look`, if given, prints what the heads attend to in a sum a + b."""
    from lab.api import read_question

    asked = read_question(question, model.tasks)
    if look and (asked is None or (asked.task, asked.representation) != ("add", "integer")):
        raise TaskError(f"{question!r}: attention=true shows sums of two integers, such as 12 + 34")
    given = model.answer(question)
    if asked is None:
        print(given.text)
        shown = given.number in re.findall("[0-9]+", given.text)
        notes = [f"the number is {given.number}"] if given.number and not shown else []
        if not notes and model.engine.format.reverse in _NOTES:
            notes = [_NOTES[model.engine.format.reverse]]
    else:
        print(f"{_number(given)} ({_verdict(given, asked.answer)})")
        notes = []
    if given.cut:
        notes.append(f"cut off after {given.tokens:,} tokens")
    for note in [*notes, *([model.caveat] if model.caveat else [])]:
        print(f"({note})")
    if look and asked:
        look(int(asked.a), int(asked.b or 0))


_NOTES = {
    "answer": "this model writes answers ones digit first: 579 is 975",
    "total": "this model reads and writes all numbers ones digit first: 123 is 321",
}


def _number(given: "Answer") -> str:
    """The number that answers the question, or the text that has none."""
    return given.number or (f"no answer in {given.text.strip()!r}" if given.text.strip() else "no answer")


def _verdict(given: "Answer", right: str) -> str:
    """Whether an answer is right, and how it was written if that is not as people write numbers."""
    verdict = "right" if given.number == right else f"wrong: {right} is right"
    return f"{verdict}; written {given.text.strip()}" if given.number and given.rewritten else verdict


def attention(name: str) -> Callable[[int, int], None]:
    """Opens the model in TransformerLens, and returns a function that prints what its heads attend to in a sum."""
    from lab.drawing.terminal import Console
    from lab.probing.addition.attention import table
    from lab.probing.bridge import open_model

    subject = open_model(name)
    return lambda a, b: Console().print(table(subject, a, b).terminal())


if __name__ == "__main__":
    main()
