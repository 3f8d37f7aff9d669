"""Trained models with a setting of their config changed, and their weights as they are."""

from typing import Any

from lab.models.loading import ScratchRun


def with_settings(run: ScratchRun, **settings: Any) -> ScratchRun:
    """The run with its model built anew. `settings`: attributes of the model's config, such as `locality`."""
    config = type(run.model.config).from_dict({**run.model.config.to_dict(), **settings})
    model = type(run.model)(config).eval()
    model.load_state_dict(run.model.state_dict())
    return run._replace(model=model)
