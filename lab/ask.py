"""Ask any model one question.

    lab ask MODEL QUESTION [key=value ...]

MODEL is a run directory of finetune or pretrain, a folder, a name on the model hub, an embedded model, or one of the
zoo (`lab list models`). QUESTION is an expression such as "12 + 34", or the name of a task with its operands, such as
"max_integer 12, 34"; a pretrained model goes on from any other text.
"""

import sys
from collections.abc import Sequence
from typing import Literal

from lab.command import read_options
from lab.config.schema import Section
from lab.errors import ConfigError, exit_cleanly


class AskOptions(Section):
    """How the model is loaded."""

    dtype: Literal["auto", "float32", "bfloat16"] = "float32"
    """The dtype of a pretrained model's weights."""
    device: Literal["auto", "cpu", "cuda"] = "auto"


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    words, options = read_options(AskOptions, arguments, "lab ask", __doc__ or "", "MODEL QUESTION")
    if len(words) != 2:
        raise ConfigError('give a model and one question, such as: lab ask smollm2-135m-instruct "12 + 34"')
    from lab.progress import quiet_libraries

    quiet_libraries()  # before they are imported: some speak then
    from lab import api

    model = api.load(words[0], dtype=options.dtype, device=options.device)
    asked = api.read_question(words[1], model.tasks)
    given = model.ask(words[1])
    if asked is None:
        print(given)
    else:
        verdict = "right" if given == asked.answer else f"wrong: {asked.answer} is right"
        print(f"{given or 'no answer'} ({verdict})")


if __name__ == "__main__":
    main()
