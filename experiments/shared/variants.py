"""Trained models with a changed setting of their config, but the same weights."""

from typing import Any

from lab.models.loading import ScratchRun


def with_settings(run: ScratchRun, **settings: Any) -> ScratchRun:
    """The run with its model built again. `settings`: attributes of the model's config, such as `locality`."""
    config = type(run.model.config).from_dict({**run.model.config.to_dict(), **settings})
    model = type(run.model)(config).eval()
    model.load_state_dict(run.model.state_dict())
    return run._replace(model=model)
