"""From an engine's config to the engine; what it needs is imported only when it is asked for."""

from typing import Any

from lab.config.evaluation import EndpointConfig, LocalEngineConfig, VllmConfig
from lab.errors import ModelError
from lab.inference.engine import Engine


def open_engine(config: LocalEngineConfig | EndpointConfig | VllmConfig, chat: bool) -> tuple[Engine, str]:
    """The engine, and what it runs on, in words.

    Raises ModelError or ConfigError when it cannot be had, or, if it is to `chat`, has no chat template.
    """
    if isinstance(config, EndpointConfig):
        from lab.inference.endpoint import EndpointEngine

        return EndpointEngine(config), f"endpoint {config.base_url}"
    if isinstance(config, VllmConfig):
        from lab.inference.vllm import VllmEngine

        engine = VllmEngine(config)
        check_chat_template(engine.tokenizer, chat)
        return engine, engine.description
    from lab.inference.local import LocalEngine
    from lab.models import checkpoints, pretrained

    model, tokenizer = checkpoints.load(config.model)
    check_chat_template(tokenizer, chat)
    return LocalEngine(model, tokenizer, config.batch_size), pretrained.describe(model)


def check_chat_template(tokenizer: Any, chat: bool) -> None:
    if chat and not tokenizer.chat_template:
        raise ModelError("the model's tokenizer has no chat template; use the base setting, or a chat model")
