"""A tuned model that reads sums with their right answers, which is faster than generating answers."""

from typing import Any

import torch

from lab.config.schema import ModelConfig
from lab.models import loading
from lab.models.swaps import swap_of
from lab.numbers.sampling import Problem
from lab.numbers.tasks import task
from lab.text.examples import Example, encode
from lab.text.formats import TextFormat


class SumReader:
    """Reads sums of integers in the format that the model was tuned with. It is loaded when it is first needed.

    `spacing` spaces the numbers evenly in everything that is read from now on; 0 leaves them as in the text, and None
    as in the training.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.spacing: int | None = None
        self._loaded: Any = None

    def example(self, item: Problem) -> Example:
        """The sum in the benchmark's wording."""
        return self._model()[2].example(item)

    @torch.inference_mode()
    def wrong(self, asked: Example) -> list[int]:
        """The places at which the right digit is not the likeliest one after the right ones before it; 0 is that of the
        ones if the highest digit comes first."""
        model, tokenizer, _ = self._model()
        if self.spacing is not None:
            loading.change_parts(model, {"even_spacing": {"distance": self.spacing} if self.spacing else None})
        prompt, completion = encode(asked, tokenizer)
        answer = completion[:-1]  # the end would finish the number, whose places are those of an unfinished one
        ids_1T = torch.tensor([[*prompt, *answer]], device=model.device)
        said_A = model(input_ids=ids_1T).logits[0, len(prompt) - 1 : -1].max(-1).indices  # faster than argmax
        return [len(answer) - 1 - at for at in (said_A != ids_1T[0, len(prompt) :]).nonzero().flatten().tolist()]

    def _model(self) -> Any:
        if self._loaded is None:
            model, tokenizer = loading.load(ModelConfig(name=self.name))
            self._loaded = model, tokenizer, TextFormat(swap_of(model).format, [task("add_integer")])
        return self._loaded
