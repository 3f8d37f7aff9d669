"""A decoder of the Llama architecture with randomly initialised weights, for rows of numbers.

`NumberLlama` is a `LlamaForCausalLM` that computes the position ids of a row from its tokens (`position_ids`) and
passes them to its attention or its inputs, depending on the encoding (`position_encodings`). Config and weights
describe it completely: if this module is imported, `AutoModelForCausalLM.from_pretrained` loads what `save_pretrained`
wrote, and `generate` works as with any other model.

Shapes: B rows, T tokens of a forward pass, K tokens of a row so far (T without a cache), N problems of a row, A tokens
with a label, V words of the vocabulary, H heads, D width of the model.
"""

from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM, Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.llama import LlamaConfig, LlamaForCausalLM
from transformers.utils.generic import can_return_tuple

from lab.config.pretraining import LOCAL_ENCODINGS, SIZES, Encoding, PositionKind, ScratchConfig
from lab.errors import ModelError
from lab.parts.nope import NoRotation
from lab.parts.stick_breaking import Downward
from lab.scratch.clipped_distances import ClippedDistances
from lab.scratch.counted_places import PlaceCounter
from lab.scratch.grid_places import SEGMENTS as GRID_SEGMENTS
from lab.scratch.number_attention import NUMBER_ATTENTION
from lab.scratch.position_encodings import AlibiBias, FireBias, LearnedPositions, LocalityBias, RelativeKeys
from lab.scratch.position_ids import TokenFacts, position_ids, segments
from lab.scratch.trace_places import SEGMENTS
from lab.text.examples import IGNORED

_SEGMENTS = 4
"""The number of segments if there are no traces."""
_LONGEST = 16_384
"""The largest number of tokens in a row, as saved configs state it. No tensor has this size; learned encodings
have limits of their own."""


class NumberLlamaConfig(LlamaConfig):
    model_type = "number_llama"

    encoding: Encoding = "rope"
    locality: float | list[float] | Literal["learned"] = 0
    window: int = 0
    far_copies: float = 1
    far_at_most: int = 0
    clip_distance: int = 0
    stick_breaking: int = 0
    """How many heads of each layer (the last ones) use stick-breaking attention."""
    downward: int = 0
    """How many of these (the last ones) walk down the places instead of back over the tokens."""
    position_kind: PositionKind = "plain"
    largest: int = 1024
    """How many position ids there are."""
    segments: bool = False
    through_point: bool = False
    vocabulary: list[str] = field(default_factory=list)
    """The words, in the order of their ids."""

    @property
    def has_own_attention(self) -> bool:
        """Whether transformers' own attention cannot compute the model; see `number_attention`."""
        return self.encoding == "relative" or self.stick_breaking > 0 or self.clip_distance > 0

    @property
    def circle(self) -> int | None:
        """The number of ids after which coupled and countdown ids begin again; None for ids that do not wrap around."""
        return self.largest if self.position_kind in ("coupled", "countdown") else None

    @property
    def grid(self) -> bool:
        """Whether ids have two directions."""
        return self.position_kind == "grid"


class RowIds(NamedTuple):
    """The ids of the tokens of a forward pass; None for those that are not given, or that the model does not use."""

    positions: torch.Tensor | None
    """(B, T)."""
    keys: torch.Tensor | None
    """(B, K): the position ids of all tokens of the rows, including those in the cache."""
    segments: torch.Tensor | None
    """(B, T)."""


class NumberLlama(LlamaForCausalLM):
    config: NumberLlamaConfig  # type: ignore[assignment]
    config_class = NumberLlamaConfig
    # the kernels of flash and flex attention do not accept our own masks
    _supports_flash_attn = False
    _supports_flex_attn = False

    def __init__(self, config: NumberLlamaConfig) -> None:
        """Raises ModelError if the vocabulary lacks a word that every row needs."""
        if config.has_own_attention:
            config._attn_implementation = NUMBER_ATTENTION
        super().__init__(config)
        self._facts = TokenFacts.of(config.vocabulary, config.through_point)
        if config.encoding != "rope":
            self.model.rotary_emb = NoRotation(cast(int, config.head_dim))  # type: ignore[assignment]
        self.position_bias = _bias(config)
        width = config.hidden_size
        self.position_embeddings = LearnedPositions(config.largest, width) if config.encoding == "learned" else None
        heads, layers = cast(int, config.num_attention_heads), cast(int, config.num_hidden_layers)
        relative = config.encoding == "relative"
        self.relative_keys = (
            RelativeKeys(layers, heads, cast(int, config.head_dim), config.circle, config.grid) if relative else None
        )
        self.place_counter = PlaceCounter(config.vocab_size) if config.position_kind == "counted" else None
        segments_of = SEGMENTS if self._facts.trace else GRID_SEGMENTS if self._facts.grid else _SEGMENTS
        self.segment_embeddings = nn.Embedding(segments_of, width) if config.segments else None
        self.post_init()
        # FSDP must not split it: `forward` calls parts of the last layer, which would stay sharded
        self._no_split_modules = set()

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, FireBias | LocalityBias | RelativeKeys | PlaceCounter):
            module.reset()

    @can_return_tuple
    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        key_position_ids: torch.Tensor | None = None,
        segment_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        cache: Cache | None = None,
        use_cache: bool = False,
        shift_labels: torch.Tensor | None = None,
        num_items_in_batch: torch.Tensor | int | None = None,
        logits_to_keep: int | torch.Tensor = 0,
    ) -> CausalLMOutputWithPast:
        """Logits (B, T, V) for the next token at each position. With labels: the loss, and logits (A, V) at the labels.

        Args:
            input_ids: (B, T).
            attention_mask: (B, K), 0 for padding. None is enough if there is no padding on the left: padding on the
                right does not affect the tokens before it, so training needs no mask.
            position_ids: (B, T); computed from the tokens if not given. A training step gives those that it drew.
            key_position_ids: (B, K), the position ids of all tokens, including those in the cache. With a cache, biases
                and relative keys need them.
            segment_ids: (B, T); computed from the tokens if not given.
            past_key_values: the cache, as transformers calls it before 5.24.
            cache: the cache, as transformers calls it from 5.24 on.
            use_cache: whether to return a cache.
            shift_labels: (B, T), the token to predict at each position, or IGNORED. The head is applied only at labels.
            num_items_in_batch: the sum of the losses is divided by this; A if not given.
            logits_to_keep: for how many of the last tokens, or for which tokens, to compute logits; 0 for all.

        Raises ModelError if an id has no embedding, or if there are tokens in the cache and ids that depend on them are
        not given.
        """
        past_key_values = past_key_values if cache is None else cache
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        seen = past_key_values.get_seq_length() if past_key_values is not None else 0
        given = RowIds(position_ids, key_position_ids, segment_ids)
        ids = self._all_ids(given, input_ids, attention_mask, seen)

        hidden_BTD = self._embedded(input_ids, ids)
        arguments = self._layer_arguments(hidden_BTD, ids, attention_mask, seen)
        arguments |= {"past_key_values": past_key_values, "use_cache": use_cache}
        *layers, last = cast(Any, self.model.layers)
        for layer in layers:
            hidden_BTD = layer(hidden_BTD, **arguments)

        if shift_labels is not None:
            counts_BT = shift_labels != IGNORED
            labels_A, logits_AV = shift_labels[counts_BT], self._logits_at(last, hidden_BTD, counts_BT, arguments)
            items = len(labels_A) if num_items_in_batch is None else num_items_in_batch
            loss = cross_entropy(logits_AV.float(), labels_A, reduction="sum") / items
            return CausalLMOutputWithPast(loss=loss, logits=logits_AV, past_key_values=past_key_values)
        hidden_BTD = self.model.norm(last(hidden_BTD, **arguments))
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        return CausalLMOutputWithPast(logits=self.lm_head(hidden_BTD[:, kept]), past_key_values=past_key_values)

    def _all_ids(
        self, given: RowIds, input_ids: torch.Tensor, attention_mask: torch.Tensor | None, seen: int
    ) -> RowIds:
        """The given ids; those that are not given are computed from the tokens. Raises ModelError as `forward` does."""
        wants_segments = self.segment_embeddings is not None
        if seen and (given.positions is None or (wants_segments and given.segments is None)):
            raise ModelError("tokens after a cache need position_ids (and segment_ids): ids follow from the whole row")
        positions_BT = given.positions
        if positions_BT is None:
            positions_BT = self.positions(input_ids, attention_mask)
        keys_BK = positions_BT if given.keys is None else given.keys
        needed = self.position_bias is not None or self.relative_keys is not None or self.config.clip_distance > 0
        if (needed or given.keys is not None) and keys_BK.shape[1] != seen + input_ids.shape[1]:
            raise ModelError(
                f"key_position_ids are for {keys_BK.shape[1]} tokens, but the cache has {seen} and input_ids "
                f"{input_ids.shape[1]} more: give those of the whole row, and give whole rows to `generate`"
            )
        segments_BT = given.segments
        if wants_segments and segments_BT is None:
            segments_BT = self.segments(input_ids)
        return RowIds(positions_BT, keys_BK, segments_BT)

    @torch.inference_mode()
    def check_rows(self, input_ids: torch.Tensor, position_ids: torch.Tensor | None = None) -> None:
        """Raises ModelError if an id of these rows (B, T) has no embedding. No attention is computed, so long rows cost
        little."""
        ids = self._all_ids(RowIds(position_ids, None, None), input_ids, None, 0)
        self._embedded(input_ids, ids)

    @property
    def most_digits(self) -> int | None:
        """The largest number of digits of an answer for which no two places get the same id; None for no limit."""
        if not self.config.circle:
            return None
        # walking heads compare places the shorter way round the circle of ids, so a row may span only half of it
        return self.config.largest // (2 if self.config.downward else 1) - 2

    def check_digits(self, digits: int) -> None:
        """Raises ModelError, in one line, if the places of an answer of so many digits would be mixed up, because ids
        wrap around."""
        if self.most_digits is not None and digits > self.most_digits:
            needed = (digits + 2) * (2 if self.config.downward else 1)
            ids = f"{self.config.largest} {self.config.position_kind} ids"
            raise ModelError(
                f"answers of {digits} digits wrap around the {ids}, so that places would be mixed up; it can write at "
                f"most {self.most_digits}: model.positions.largest should be at least {needed}"
            )

    def _embedded(self, input_ids: torch.Tensor, ids: RowIds) -> torch.Tensor:
        """The inputs of the first layer, (B, T, D): tokens, and what is added for positions and segments."""
        hidden_BTD = self.model.embed_tokens(input_ids)
        if self.position_embeddings is not None:
            hidden_BTD = hidden_BTD + self.position_embeddings(ids.positions)
        if self.segment_embeddings is not None:
            hidden_BTD = hidden_BTD + self.segment_embeddings(ids.segments)
        return hidden_BTD

    def _layer_arguments(
        self, hidden_BTD: torch.Tensor, ids: RowIds, attention_mask: torch.Tensor | None, seen: int
    ) -> dict[str, Any]:
        """What every layer gets besides its inputs. `LlamaModel`'s own loop over layers is not used: it would treat a
        jump of ids as the start of another packed row, and mask attention there."""
        arguments = {
            "attention_mask": self._mask(hidden_BTD.shape[1], seen, attention_mask, ids),
            "position_ids": ids.positions,
            "position_embeddings": self.model.rotary_emb(hidden_BTD, ids.positions),
        }
        if self.relative_keys is not None:
            distances_BQKC = self.relative_keys(ids.positions, ids.keys)
            arguments |= {"relative_LHCD": self.relative_keys.keys, "distances_BQKC": distances_BQKC}
        positions_BQ, keys_BK = cast(torch.Tensor, ids.positions), cast(torch.Tensor, ids.keys)
        if distance := self.config.clip_distance:
            angles = partial(self.model.rotary_emb, hidden_BTD)
            arguments["clipped"] = ClippedDistances.of(distance, positions_BQ, keys_BK, self.config.circle, angles)
        if self.config.downward:
            arguments["downward"] = Downward.of(positions_BQ, keys_BK, self.config.circle)
        return arguments

    def _mask(self, tokens: int, seen: int, attention_mask: torch.Tensor | None, ids: RowIds) -> torch.Tensor | None:
        """The attention mask (B or 1, H or 1, T, K): True for visible keys, or what is added to the scores.

        None, which is faster, if no mask is needed: for a single query that sees all keys, and for rows that SDPA's own
        causal attention computes.
        """
        plain = self.position_bias is None and attention_mask is None and not self.config.has_own_attention
        sdpa = self.config._attn_implementation == "sdpa"
        if plain and (tokens == 1 or (sdpa and not seen)):
            return None
        device = cast(torch.Tensor, ids.positions).device
        queries_T1 = torch.arange(seen, seen + tokens, device=device)[:, None]
        keys_K = torch.arange(seen + tokens, device=device)
        visible = (keys_K <= queries_T1)[None, None]
        if attention_mask is not None:
            # padding sees itself: if all scores of a query were -inf, it would become NaN and so would all that follows
            visible = visible & (attention_mask[:, None, None].bool() | (keys_K == queries_T1))
        if self.position_bias is None and sdpa:
            return visible
        dtype = self.model.embed_tokens.weight.dtype
        bias = torch.zeros((), dtype=dtype, device=device)
        if self.position_bias is not None:
            bias = self.position_bias(ids.positions, ids.keys, visible[:, 0]).to(dtype)
        return torch.where(visible, bias, float("-inf"))

    def _logits_at(
        self, last: Any, hidden_BTD: torch.Tensor, counts_BT: torch.Tensor, arguments: dict[str, Any]
    ) -> torch.Tensor:
        """The logits (A, V) at the tokens that count. The feed-forward of the last layer is computed only for these,
        which saves up to two thirds of a one-layer model."""
        attended_BTD, _ = last.self_attn(hidden_states=last.input_layernorm(hidden_BTD), **arguments)
        hidden_AD = (hidden_BTD + attended_BTD)[counts_BT]
        hidden_AD = hidden_AD + last.mlp(last.post_attention_layernorm(hidden_AD))
        return self.lm_head(self.model.norm(hidden_AD))

    def positions(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Position ids of whole rows (B, T), or (1, T) if they are the same for all rows; see `position_ids`."""
        kind, largest = self.config.position_kind, self.config.largest
        if self.place_counter is not None:
            return self.place_counter(input_ids, self.facts(input_ids.device))
        if kind == "plain" and attention_mask is None:
            return torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        return position_ids(kind, largest, input_ids, self.facts(input_ids.device))

    def segments(self, input_ids: torch.Tensor) -> torch.Tensor:
        """The segments of whole rows, (B, T): which number of its problem each token belongs to; see `position_ids`."""
        return segments(input_ids, self.facts(input_ids.device))

    def facts(self, device: torch.device) -> TokenFacts:
        """The facts of the vocabulary, on the given device."""
        if self._facts.digits.device != device:
            self._facts = self._facts.to(device)
        return self._facts

    def prepare_inputs_for_generation(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        **others: Any,
    ) -> dict[str, Any]:
        """Gives the forward pass the ids of the whole row (B, K), because `generate` would give it plain ids."""
        keys_BK = self.positions(input_ids, attention_mask).expand(input_ids.shape)
        inputs = super().prepare_inputs_for_generation(  # type: ignore[misc]
            input_ids, attention_mask=attention_mask, position_ids=keys_BK, **others
        )
        tokens = inputs["input_ids"].shape[1]
        return {
            **inputs,
            "key_position_ids": keys_BK,
            "segment_ids": self.segments(input_ids)[:, -tokens:] if self.config.segments else None,
        }

    def sharpen(self, factor: float) -> None:
        """Multiply all attention scores by `factor` from now on; position biases stay as they are.

        In longer rows, softmax spreads over more keys. Scores that grow with the logarithm of the row's length
        counteract this (Chiang and Cholak 2022, arXiv 2202.12172; Nakanishi 2025, arXiv 2501.19399). A constant factor
        is the simplest form of this remedy.
        """
        for layer in cast(Any, self.model.layers):
            layer.self_attn.scaling = cast(int, self.config.head_dim) ** -0.5 * factor

    def bound_far(self, at_most: int) -> None:
        """Bound, from now on, how much all far keys of a query weigh together; see `ScratchConfig.far_at_most`.

        Raises ModelError for an encoding or position ids without this bound.
        """
        if self.config.encoding not in LOCAL_ENCODINGS:
            raise ModelError(f"far_at_most goes with rope, relative or learned, not with {self.config.encoding}")
        if self.config.position_kind not in ("coupled", "abacus"):
            raise ModelError(f"far_at_most does not go with positions.kind={self.config.position_kind}")
        self.config.far_at_most = at_most
        learned = {} if self.position_bias is None else self.position_bias.state_dict()
        self.position_bias = _bias(self.config)
        if self.position_bias is not None:
            self.position_bias.to(self.device).load_state_dict(learned)
        self.train(self.training)  # a new module is in training mode, in which far_copies count

    def clip_distances(self, distance: int) -> None:
        """From now on, score keys that are farther away than this as if they were at this distance; 0 removes the
        limit. See `ScratchConfig.clip_distance`.

        Raises ModelError for an encoding that does not rotate.
        """
        if self.config.encoding != "rope":
            raise ModelError(f"clip_distance goes with rope, not with {self.config.encoding}")
        self.config.clip_distance = distance
        self.set_attn_implementation(NUMBER_ATTENTION if distance else "sdpa")

    def parameters_without_embeddings(self) -> int:
        """The number of weights outside embeddings and head; the sizes in configs are named after it."""
        embeddings = [module for module in self.modules() if isinstance(module, nn.Embedding)]
        left_out = {id(module.weight) for module in [*embeddings, self.lm_head]}
        return sum(weight.numel() for weight in self.parameters() if id(weight) not in left_out)


def _bias(config: NumberLlamaConfig) -> AlibiBias | FireBias | LocalityBias | None:
    heads, circle = config.num_attention_heads, config.circle
    match config.encoding:
        case "alibi":
            return AlibiBias(heads, circle=circle)
        case "alibi_released":
            return AlibiBias(heads, sign=1, circle=circle)
        case "fire":
            return FireBias(heads, circle)
        case _:
            free = [head >= heads - config.stick_breaking for head in range(heads)] if config.stick_breaking else []
            if not (config.locality or config.window or config.far_copies > 1 or config.far_at_most):
                return None
            far = config.far_copies, config.far_at_most
            return LocalityBias(config.locality, circle, config.window, free, *far, config.grid, cast(int, heads))


def _rope(factor: float) -> dict[str, Any]:
    """RoPE as in the paper that introduced it, with position ids divided by `factor`."""
    usual = {"rope_type": "default", "rope_theta": 10_000.0}
    return usual if factor == 1 else {**usual, "rope_type": "linear", "factor": factor}


AutoConfig.register(NumberLlamaConfig.model_type, NumberLlamaConfig)
AutoModelForCausalLM.register(NumberLlamaConfig, NumberLlama)


def build(config: ScratchConfig, vocabulary: Sequence[str], seed: int) -> NumberLlama:
    """A new model in float32. Its weights are drawn from the seed as Llama's are (normal, standard deviation 0.02).

    Raises ModelError if the vocabulary lacks a word that every row needs.
    """
    layers, width, inner, heads, key_value_heads = SIZES[config.size]
    facts = TokenFacts.of(vocabulary)
    shared = set(NumberLlamaConfig.__annotations__)  # most of its keys have the same name in both configs
    torch.manual_seed(seed)
    return NumberLlama(
        NumberLlamaConfig(
            **config.model_dump(include=shared),
            **config.positions.model_dump(include=shared),
            position_kind=config.positions.kind,
            vocabulary=list(vocabulary),
            vocab_size=len(vocabulary),
            num_hidden_layers=config.layers or layers,
            hidden_size=width,
            intermediate_size=inner,
            num_attention_heads=heads,
            num_key_value_heads=key_value_heads if config.key_value_heads == "paper" else heads,
            max_position_embeddings=_LONGEST,
            rope_parameters=_rope(config.rope_factor),  # type: ignore[call-arg]
            tie_word_embeddings=False,
            pad_token_id=facts.pad,
            bos_token_id=facts.begin,
            eos_token_id=facts.end,
            attn_implementation="sdpa",  # type: ignore[call-arg]
        )
    )
