"""The base class of engines that have the model's tokenizer."""

from typing import Any

from lab.config.notation import FormatConfig
from lab.inference.engine import Request
from lab.text.examples import Prompt, encode_prompt, opens_thoughts


class TokenizingEngine:
    tokenizer: Any
    format = FormatConfig()

    def check(self, request: Request) -> None:
        encode_prompt(request.prompt, self.tokenizer)

    def count_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def tokens_needed(self, prompt: Prompt, completion: str) -> int:
        return len(encode_prompt(prompt, self.tokenizer)) + self.count_tokens(completion) + 1

    def whole(self, prompt_ids: list[int], text: str) -> str:
        """The text, with the tag that opens its thoughts if the prompt ended with this tag."""
        return f"<think>{text}" if opens_thoughts(prompt_ids, self.tokenizer) else text
