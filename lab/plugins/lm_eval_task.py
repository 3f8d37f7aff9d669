"""The class of the lab's tasks in lm-evaluation-harness: each question has its own token budget, as in `lab evaluate`.

lm-eval gives all questions of a task the same settings. It imports this module when it loads a task of the lab's.
"""

from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask

from lab.plugins.shared import budgets


class BudgetedTask(ConfigurableTask):
    """A task whose questions have budgets of their own, unless --gen_kwargs sets max_gen_toks.

    Tokens are counted with the tokenizer that --model_args name; in Python, TaskManager(metadata={"pretrained": ...})
    does.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config={name: value for name, value in config.items() if name != "class"})
        self._longest = config["generation_kwargs"]["max_gen_toks"]
        self._tokenizer: Any = None

    def build_all_requests(self, *, tokenizer_name: str = "", **settings: Any) -> None:
        """See `Task`. `tokenizer_name`: with a chat template, the name of the model's tokenizer, with __ for /."""
        known = self.config.metadata or {}
        self._tokenizer = _loaded(known.get("tokenizer") or known.get("pretrained") or tokenizer_name)
        super().build_all_requests(tokenizer_name=tokenizer_name, **settings)

    def construct_requests(self, doc: dict[str, Any], ctx: str | list[str], **settings: Any) -> Instance:
        """See `Task`."""
        request: Any = super().construct_requests(doc, ctx, **settings)
        prompt, kwargs = request.arguments
        if kwargs["max_gen_toks"] == self._longest:
            budget = budgets(doc["benchmark"], doc["problem_seed"], self._tokenizer)[doc["index"]]
            request.arguments = (prompt, {**kwargs, "max_gen_toks": budget})
        return request


def _loaded(name: str) -> Any:
    """The tokenizer of a model that is on this machine, as lm-eval has just loaded it; None for an endpoint's."""
    from transformers import AutoTokenizer

    for known in (name.replace("__", "/"), name):
        try:
            return AutoTokenizer.from_pretrained(known, local_files_only=True) if known else None
        except (OSError, ValueError):
            continue
    return None
