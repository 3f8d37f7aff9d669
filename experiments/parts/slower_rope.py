"""RoPE with position ids divided by a factor (position interpolation, Chen et al. 2023, arXiv 2306.15595), so the pair
of dimensions that rotates fastest completes a turn every 6.3 times this many ids."""

from typing import Any

from pydantic import Field
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from lab.config.parts import PartConfig, Parts
from lab.parts.clipped_distances import check_that_rope_is_left
from lab.parts.part import Part


class SlowerRopeConfig(PartConfig, kind="slower_rope"):
    """RoPE with position ids divided by a factor."""

    PRETRAINED = False

    factor: float = Field(default=2, gt=0)
    """The factor."""

    def check(self, run: Any) -> None:
        check_that_rope_is_left(run.parts, "parts.slower_rope")

    def build(self, model: Any, others: Parts) -> "SlowerRope":
        return SlowerRope(self)


class SlowerRope(Part):
    def attach(self, model: Any) -> None:
        model.config.rope_parameters = {
            **model.config.rope_parameters,
            "rope_type": "linear",
            "factor": self.config.factor,
        }
        model.model.rotary_emb = LlamaRotaryEmbedding(model.config)
