"""A decoder of the Llama architecture with randomly initialised weights, for rows of numbers.

`NumberLlama` is a Llama with parts (lab/graft/llama.py), whose weights are all trained. Config and weights describe it
completely: if this module is imported, `AutoModelForCausalLM.from_pretrained` loads what `save_pretrained` wrote, and
`generate` works as with any other model.

Shapes: B rows, T tokens of a forward pass, A tokens with a label, V words of the vocabulary, D width of the model.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.llama import LlamaConfig
from transformers.utils.generic import can_return_tuple

from lab.config.earlier import SCRATCH_KEYS, SCRATCH_WEIGHTS, scratch_parts
from lab.config.parts import import_modules
from lab.config.pretraining import SIZES, PretrainConfig
from lab.errors import ModelError
from lab.graft.llama import GraftedLlama
from lab.parts.rows import Rows
from lab.text.examples import IGNORED
from lab.text.notation import BEGIN, END, EQUALS, PAD
from lab.trees.paths import PATH_ATTENTION

_LONGEST = 16_384
"""The largest number of tokens in a row, as saved configs state it. No tensor has this size; learned encodings
have limits of their own."""


class NumberLlamaConfig(LlamaConfig):
    model_type = "number_llama"

    uses: list[str] = field(default_factory=list)
    """Modules that are imported because they register parts."""
    parts: dict[str, Any] = field(default_factory=dict)
    """The sections of the parts, by their kinds."""
    vocabulary: list[str] = field(default_factory=list)
    """The words, in the order of their ids."""

    def __post_init__(self, **others: Any) -> None:
        if "encoding" in others:  # saved by an earlier version
            found = scratch_parts(others)
            self.uses, self.parts = found["uses"], found["parts"]
            others = {key: value for key, value in others.items() if key not in _GONE}
        super().__post_init__(**others)


_GONE = (*SCRATCH_KEYS, "position_kind", "largest", "segments", "through_point")
"""The keys of configs of earlier versions that became parts."""


class NumberLlama(GraftedLlama):
    config: NumberLlamaConfig  # type: ignore[assignment]
    config_class = NumberLlamaConfig
    takes_ids = True  # those that were drawn for training
    # the kernels of flash and flex attention do not accept our own masks
    _supports_flash_attn = False
    _supports_flex_attn = False

    def __init__(self, config: NumberLlamaConfig) -> None:
        """Raises ModelError if the vocabulary lacks a word that every row needs, and for a part that does not fit."""
        import_modules(config.uses)
        check_words(config.vocabulary)
        super().__init__(config)
        self.know_tokens(config.vocabulary, [], [], "none")
        # FSDP must not split it: `forward` calls parts of the last layer, which would stay sharded
        self._no_split_modules = set()

    def _attention(self) -> str:
        return PATH_ATTENTION if self.beyond_scores else "sdpa"

    @classmethod
    def from_pretrained(cls, *arguments: Any, **settings: Any) -> Any:
        """See `LlamaForCausalLM.from_pretrained`. Weights that an earlier version saved get the names that they have
        now, also when they are saved again."""
        found = super().from_pretrained(*arguments, key_mapping=SCRATCH_WEIGHTS, **settings)
        model: Any = found[0] if isinstance(found, tuple) else found
        model._weight_conversions = None
        return found

    @can_return_tuple
    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        shift_labels: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """Logits (B, T, V) for the next token at each position. With labels: the loss, and logits (A, V) at the labels.

        Args:
            input_ids: (B, T).
            attention_mask: (B, K), 0 for padding. None is enough if there is no padding on the left: padding on the
                right does not affect the tokens before it, so training needs no mask.
            position_ids: (B, T); computed from the tokens if not given. A training step gives those that it drew.
            shift_labels: (B, T), the token to predict at each position, or IGNORED. The head is applied only at labels.
            num_items_in_batch: the sum of the losses is divided by this; A if not given.
            others: see `GraftedLlama.forward`.

        Raises ModelError if an id has no embedding, and as GraftedLlama does.
        """
        if shift_labels is None:
            return super().forward(input_ids, attention_mask, position_ids, **others)
        logits_AV, labels_A = self._at_labels(input_ids, attention_mask, position_ids, shift_labels)
        items = len(labels_A) if num_items_in_batch is None else num_items_in_batch
        loss = cross_entropy(logits_AV.float(), labels_A, reduction="sum") / items
        return CausalLMOutputWithPast(loss=loss, logits=logits_AV)

    def _at_labels(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        position_ids: torch.Tensor | None,
        labels_BT: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits (A, V) at the tokens with labels, and the labels (A). The feed-forward of the last layer and the
        head are computed only for these, which saves up to two thirds of a one-layer model."""
        hidden_BTD, mask, ids_BT, acts = self.entered(input_ids, attention_mask, position_ids)
        arguments = {"position_ids": ids_BT, "position_embeddings": self.model.rotary_emb(hidden_BTD, ids_BT)}
        arguments |= {"acts": acts} if acts else {}
        *layers, last = cast(Any, self.model.layers)
        for layer in layers:
            hidden_BTD = layer(hidden_BTD, mask, **arguments)
        counts_BT = labels_BT != IGNORED
        attended_BTD, _ = last.self_attn(
            hidden_states=last.input_layernorm(hidden_BTD), attention_mask=last.changed(mask, acts), **arguments
        )
        hidden_AD = (hidden_BTD + attended_BTD)[counts_BT]
        hidden_AD = hidden_AD + last.mlp(last.post_attention_layernorm(hidden_AD))
        return self.lm_head(self.model.norm(hidden_AD)), labels_BT[counts_BT]

    def drawn_ids(self, tokens_BT: torch.Tensor, generator: np.random.Generator) -> torch.Tensor | None:
        """Position ids (B, T) of the rows of a training batch; None if the model computes them in each pass."""
        if any(part.in_pass for part in self.parts.values()):
            return None
        return self._position_ids(Rows(tokens_BT, self.words, generator=generator))

    @torch.inference_mode()
    def check_rows(self, input_ids: torch.Tensor, position_ids: torch.Tensor | None = None) -> None:
        """Raises ModelError if an id of these rows (B, T) has no embedding. No attention is computed, so long rows cost
        little."""
        self.entered(input_ids, None, position_ids)

    @property
    def most_digits(self) -> int | None:
        """The largest number of digits of an answer for which no two places get the same id; None for no limit."""
        limits = [part.most_digits for part in self.parts.values()]
        return min((limit for limit in limits if limit is not None), default=None)

    def check_digits(self, digits: int) -> None:
        """Raises ModelError, in one line, if the places of an answer of so many digits would be mixed up, because ids
        wrap around."""
        if self.most_digits is not None and digits > self.most_digits:
            kind = next(kind for kind, part in self.parts.items() if part.config.DECIDES)
            raise ModelError(
                f"answers of {digits} digits wrap around the {self.parts[kind].config.largest} ids of parts.{kind}, so "
                f"that places would be mixed up; it can write at most {self.most_digits}: use a larger "
                f"parts.{kind}.largest"
            )

    def positions(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Position ids of whole rows (B, T)."""
        rows = Rows(input_ids, self.words)
        ids_BT = self._position_ids(rows)
        return rows.in_text if ids_BT is None else ids_BT

    def sharpen(self, factor: float) -> None:
        """Multiply all attention scores by `factor` from now on; position biases stay as they are.

        In longer rows, softmax spreads over more keys. Scores that grow with the logarithm of the row's length
        counteract this (Chiang and Cholak 2022, arXiv 2202.12172; Nakanishi 2025, arXiv 2501.19399). A constant factor
        is the simplest form of this remedy.
        """
        for layer in cast(Any, self.model.layers):
            layer.self_attn.scaling = cast(int, self.config.head_dim) ** -0.5 * factor

    def parameters_without_embeddings(self) -> int:
        """The number of weights outside embeddings and head; the sizes in configs are named after it."""
        embeddings = [module for module in self.modules() if isinstance(module, nn.Embedding)]
        left_out = {id(module.weight) for module in [*embeddings, self.lm_head]}
        return sum(weight.numel() for weight in self.parameters() if id(weight) not in left_out)


def check_words(vocabulary: Sequence[str]) -> None:
    """Raises ModelError if the vocabulary lacks a word that every row needs."""
    if missing := [word for word in (PAD, BEGIN, END, EQUALS) if word not in vocabulary]:
        raise ModelError(f"the vocabulary of {len(vocabulary)} words has no {', '.join(missing)}")


AutoConfig.register(NumberLlamaConfig.model_type, NumberLlamaConfig)
AutoModelForCausalLM.register(NumberLlamaConfig, NumberLlama)


def build(config: PretrainConfig, vocabulary: Sequence[str]) -> NumberLlama:
    """A new model in float32. Its weights are drawn from the seed as Llama's are (normal, standard deviation 0.02).

    Raises ModelError if the vocabulary lacks a word that every row needs.
    """
    check_words(vocabulary)
    layers, width, inner, heads, key_value_heads = SIZES[config.model.size]
    torch.manual_seed(config.seed)
    return NumberLlama(
        NumberLlamaConfig(
            uses=config.uses,
            parts={kind: part.model_dump() for kind, part in config.parts.items()},
            vocabulary=list(vocabulary),
            vocab_size=len(vocabulary),
            num_hidden_layers=config.model.layers or layers,
            hidden_size=width,
            intermediate_size=inner,
            num_attention_heads=heads,
            num_key_value_heads=key_value_heads if config.model.key_value_heads == "paper" else heads,
            max_position_embeddings=_LONGEST,
            # as in the paper that introduced RoPE
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},  # type: ignore[call-arg]
            tie_word_embeddings=False,
            pad_token_id=vocabulary.index(PAD),
            bos_token_id=vocabulary.index(BEGIN),
            eos_token_id=vocabulary.index(END),
            attn_implementation="sdpa",  # type: ignore[call-arg]
        )
    )
