"""Makes an engine from its config. An engine's libraries are imported only if the engine is used."""

from pathlib import Path

from lab import distributed
from lab.config.evaluation import EndpointConfig, LocalEngineConfig
from lab.engines.api_key import needed_key
from lab.engines.engine import Engine
from lab.errors import ConfigError, ModelError


def open_engine(config: LocalEngineConfig | EndpointConfig) -> tuple[Engine, str]:
    """The engine, and a text that says what it runs on. Raises ModelError or ConfigError if it cannot be made."""
    if isinstance(config, EndpointConfig):
        if distributed.count() > 1:
            what = "needs a single process: start it without a launcher, and set engine.concurrency"
            raise ConfigError(f"engine.kind={config.kind} {what}")
        from lab.engines.endpoint import EndpointEngine

        return EndpointEngine(config, needed_key(config)), f"endpoint {config.base_url}"
    from lab.engines.local import LocalEngine
    from lab.engines.plain import ScratchEngine
    from lab.models import loading, pretrained, sources

    folder = Path(sources.resolve(config.model.name))
    if loading.is_scratch(folder):
        _check_keys_of_scratch(config)
        given = "device" in config.model.model_fields_set
        run = loading.load_scratch(folder, config.model.device if given else None)
        loading.change_parts(run.model, config.parts)
        return ScratchEngine(run, config.batch_size), pretrained.describe(run.model)
    model, tokenizer = loading.load(config.model)
    loading.change_parts(model, config.parts)
    return LocalEngine(model, tokenizer, config.batch_size), pretrained.describe(model)


def _check_keys_of_scratch(config: LocalEngineConfig) -> None:
    """Raises ModelError for keys of the config that would have no effect on a model from scratch."""
    model = config.model
    idle = {
        f"engine.model.dtype={model.dtype}": model.dtype == "bfloat16",
        f"engine.model.quantization={model.quantization}": model.quantization != "none",
    }
    if wrong := [key for key, given in idle.items() if given]:
        raise ModelError(f"{model.name} is a model from scratch, which computes in float32: leave {wrong[0]} out")
