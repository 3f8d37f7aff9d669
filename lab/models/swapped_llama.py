"""A pretrained Llama with other positions, with places of digits, or with forbidden tokens (Number Cookbook, Table 18).

- positions: nope removes the rotation; alibi also adds a bias (`position_encodings`).
- places: a vector for the place of a digit in its run of digits, added to the token's embedding (Abacus, McLeish et al.
  2024). All vectors start at zero, so the model first computes exactly what the base model does.
- same place: a bias towards the digits whose place is written next, which also starts at zero (`same_place`).
- coupled: a number counts as one token, and digits are seen only from nearby places (`coupled`); includes that bias.
  Numbers may be evenly spaced (`even_spacing`).
- forbidden tokens have probability 0, both in training and in generation.

Places depend on all tokens before them. A forward pass over parts of rows (a prefix tree, or a step with a cache)
therefore gets them as arguments, computed from the whole rows.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far (Q without a cache), V words, H heads.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import Cache, LlamaConfig, LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast

from lab.config.finetuning import TextPositionsConfig
from lab.errors import ModelError
from lab.models.coupled import FAR_KIND, HIDDEN, hide
from lab.models.even_spacing import ROPE_THAT_CHANGES, EvenSpacing
from lab.models.paths import PATH_ATTENTION, Paths, attends_along_paths
from lab.models.position_encodings import AlibiBias, NoRotation
from lab.models.row_places import PLACED, left_padding, row_places, wants_places
from lab.models.same_place import NEIGHBOURS, SamePlaceBias, SamePlaceLayer, pairs
from lab.models.stick_breaking import Downward
from lab.models.walking_heads import Walk, WalkBias, WalkHook, walk_down
from lab.text.places import RowSpots, in_number, row_spots, row_spots_downward

ADDED = ("place_embeddings", "same_place", "walk_bias")
"""The modules that a swap adds; a base model has no weights for them."""


class PlaceEmbeddings(nn.Embedding):
    """Vectors (B, Q, D) for places (B, Q) from 1 up; place 0 adds nothing. All are zero before training."""

    def reset(self) -> None:
        nn.init.zeros_(self.weight)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if (largest := int(input.max())) > self.num_embeddings:
            raise ModelError(
                f"a number has a digit at place {largest}, but only places to {self.num_embeddings} have embeddings: "
                f"train with positions.places of at least {largest}"
            )
        return super().forward((input - 1).clamp(min=0)) * (input > 0)[..., None]


class SwappedLlama(LlamaForCausalLM):
    def __init__(self, config: LlamaConfig) -> None:
        """`config.swapped_positions` holds a TextPositionsConfig as a dictionary.

        Raises ModelError if positions.locality names layers or heads that the model does not have.
        """
        super().__init__(config)
        swap = TextPositionsConfig(**config.swapped_positions)  # type: ignore[attr-defined]
        if swap.kind in ("nope", "alibi"):
            width = config.head_dim or config.hidden_size // config.num_attention_heads
            self.model.rotary_emb = NoRotation(width)  # type: ignore[assignment]
        self.alibi = AlibiBias(config.num_attention_heads) if swap.kind == "alibi" else None
        self.place_embeddings = PlaceEmbeddings(swap.places, config.hidden_size) if swap.places else None
        self.coupled, self.same_place = swap.kind == "coupled", None
        self.neighbours = swap.locality.window if self.coupled else NEIGHBOURS
        self.operands = swap.locality.operands if self.coupled else 0
        self.words_seen = swap.locality.words
        self.far = swap.locality.far if self.coupled else "hidden"
        self.sees_far, self.far_fade = self.far != "hidden", self.far == "fading"
        self.far_at_most = swap.locality.far_at_most
        self.spacing = 0
        if swap.locality.spacing:
            self.space_evenly(swap.locality.spacing)
        if swap.same_place or self.coupled:
            size = config.num_hidden_layers, config.num_attention_heads
            self.same_place = SamePlaceBias(*size, self.neighbours, self.sees_far, self.far_fade)
            layers = [SamePlaceLayer(config, layer) for layer in range(config.num_hidden_layers)]
            self.model.layers = nn.ModuleList(layers)
        if self.coupled:
            config._attn_implementation = PATH_ATTENTION
            hiding = self._layers("layers", swap.locality.layers)
            for index, layer in enumerate(self.model.layers):
                layer.bounded = index in hiding  # type: ignore[union-attr]
        self.walk_bias, self.walking = None, range(0)
        if walks := swap.locality.walk.heads:
            if walks > (heads := config.num_attention_heads):
                raise ModelError(f"positions.locality.walk.heads={walks}: each layer of the model has {heads} heads")
            self.walking = self._layers("walk.layers", swap.locality.walk.layers)
            self.walk_bias = WalkBias(len(self.walking), walks)
        self.walk_hook: WalkHook | None = None
        """Gets the weights of the walking heads of each layer in a forward pass, and may replace them."""
        self.reverse = "total"
        """Which numbers are written lowest digit first: "total" for all, "answer", or "none"."""
        self.new_tokens: list[int] = []
        self._digits: tuple[int, ...] = ()
        self._is_digit = np.empty(0, dtype=bool)
        self._words: tuple[str, ...] = ()
        self._forbidden = torch.empty(0, dtype=torch.long, device="cpu")
        self.post_init()

    def _layers(self, key: str, given: tuple[int, int] | None) -> range:
        """The layers of positions.locality.`key`, all if not given. Raises ModelError if the model has fewer layers."""
        first, last = given or (0, len(self.model.layers) - 1)
        if last >= len(self.model.layers):
            what = f"there is no layer {last}; the model has {len(self.model.layers)}, counted from 0"
            raise ModelError(f"positions.locality.{key}={[first, last]}: {what}")
        return range(first, last + 1)

    def bound_far(self, at_most: int) -> None:
        """Bound, from now on, how much all digits outside the window weigh together; see `LocalityConfig.far_at_most`.

        Raises ModelError if the model sees no such digits.
        """
        if not self.sees_far:
            raise ModelError("far_at_most needs a model that was tuned with positions.locality.far=seen or fading")
        self.far_at_most = at_most

    def space_evenly(self, spacing: int) -> None:
        """Space numbers evenly from now on, or, if `spacing` is 0, as in the text; see `LocalityConfig.spacing`.

        Raises ModelError if positions are not coupled, for kinds of RoPE that change with the largest id, and for a
        spacing below 0.
        """
        if spacing < 0:
            raise ModelError(f"spacing={spacing}: should be 0 or more")
        if not self.coupled:
            raise ModelError("spacing needs a model that was tuned with positions.kind=coupled")
        if self.model.rotary_emb.rope_type in ROPE_THAT_CHANGES:
            raise ModelError(f"spacing does not go with RoPE of the kind {self.model.rotary_emb.rope_type}")
        self.spacing = spacing

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, PlaceEmbeddings | SamePlaceBias | WalkBias):
            module.reset()

    def know_tokens(self, words: Sequence[str], new: Sequence[int], forbidden: Sequence[int]) -> None:
        """Tells the model its tokens. Tokens that consist of digits have places; hints are ignored.

        Args:
            words: the vocabulary in the order of its ids.
            new: ids of tokens that the base model does not have.
            forbidden: ids of tokens that get probability 0.

        Raises ModelError if a token has several digits and the swap needs one digit a token.
        """
        self.new_tokens = list(new)
        hinted = tuple(-1 if word[:1] == "<" and word[-1:] == ">" and "." in word else 0 for word in words)
        self._digits = tuple(
            len(word) if word.isascii() and word.isdigit() else hint for word, hint in zip(words, hinted, strict=True)
        )
        several = [word for word, digits in zip(words, self._digits, strict=True) if digits > 1]
        if self.same_place is not None and set(several) - {words[token] for token in forbidden}:
            key = "positions.kind=coupled" if self.coupled else "positions.same_place"
            what = f"{key} needs one digit a token, but the model has {several[0]!r}"
            raise ModelError(f"{what}: use tokenizer.digits.kind=one_digit")
        self._is_digit = np.array(self._digits) > 0
        self._words = tuple("" if hint else word for word, hint in zip(words, hinted, strict=True))
        self._forbidden = torch.tensor(forbidden, dtype=torch.long)

    def places(self, tokens: Sequence[int]) -> list[int]:
        """For each token, the number of digits of its run up to and including it; 0 for tokens without digits."""
        found, run = [], 0
        for token in tokens:
            digits = self._digits[token]
            run = run + digits if digits > 0 else run if digits < 0 else 0
            found.append(run if digits > 0 else 0)
        return found

    def digits(self, tokens: Sequence[int]) -> list[int]:
        """The digit of each token; 0 for other tokens."""
        return [int(self._words[token]) if self._digits[token] == 1 else 0 for token in tokens]

    def spots(self, tokens: Sequence[int], last: int) -> RowSpots:
        """The spots of the digits of a row (lab/text/places.py), and of those that would follow its `last` tokens."""
        words = [self._words[token] for token in tokens]
        if self.reverse == "none":
            return row_spots_downward(words, last, self.operands)
        return row_spots(words, last, self.reverse == "answer", self.operands)

    def pairs(self, rows: Sequence[RowSpots], padding: Sequence[int] = (0,)) -> dict[str, torch.Tensor]:
        """What the model needs to know about pairs of queries and keys: their kinds, kinds_BQK, and for walking heads
        what `walk_down` returns. Rows are padded on the right, and what is returned for this padding means nothing.
        `padding`: see `hide`."""
        spots = RowSpots.stacked(rows)
        kinds_BQK = pairs(spots, self.neighbours)
        if self.coupled:
            kinds_BQK = hide(kinds_BQK, spots, self.words_seen, padding, self.far)
        found = {"kinds_BQK": kinds_BQK}
        return {**found, **walk_down(spots, self.operands)} if self.walk_bias is not None else found

    @property
    def looks_ahead(self) -> bool:
        """Whether places depend on later tokens. They do if the highest digit comes first: the length of the number
        decides the place of each digit."""
        return self.coupled and self.reverse == "none"

    def shareable(self, tokens: Sequence[int], agreed: int) -> int:
        """How many of the first `agreed` tokens can be shared with another sequence, because their states do not depend
        on later tokens. If places depend on later tokens, a number at the end of these tokens is not shared: without
        what follows it, it would be read as an unfinished answer."""
        while self.looks_ahead and agreed and in_number(self._words[tokens[agreed - 1]]):
            agreed -= 1
        return agreed

    def are_digits(self, tokens: Sequence[int]) -> np.ndarray:
        """Whether each token is a digit, (T,)."""
        return self._is_digit[np.array(tokens, dtype=np.int64)]

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        paths: Paths | None = None,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """The forward pass of LlamaForCausalLM with the swapped parts.

        Args:
            input_ids: (B, Q).
            attention_mask: (B, K), 0 for padding, or (B, 1, Q, K), True for visible keys.
            position_ids: (B, Q).
            past_key_values: the cache.
            inputs_embeds: not supported, because places follow from tokens.
            paths: the paths of a tree; the mask and kinds_BQK then have a row for each row of the paths.
            others: what `row_places` returns for the whole rows, if `input_ids` are parts of them, and the remaining
                arguments of LlamaForCausalLM.

        Raises ModelError if embeddings are given, if a place has no embedding, or if there are tokens in the cache and
        places are not given.
        """
        seen = past_key_values.get_seq_length() if past_key_values is not None else 0
        if inputs_embeds is not None:
            raise ModelError("a swapped model reads tokens: give input_ids, not inputs_embeds")
        hidden_BQD = self.model.embed_tokens(input_ids)
        placed = {name: given for name in PLACED if (given := others.pop(name, None)) is not None}
        if wants_places(self) and not placed:
            if seen:
                raise ModelError("tokens after a cache need the arguments of row_places, which need whole rows")
            placed = row_places(self, input_ids.tolist(), padding=left_padding(attention_mask))
            position_ids = placed.get("position_ids", position_ids)
        if self.place_embeddings is not None:
            hidden_BQD = hidden_BQD + self.place_embeddings(placed["place_ids"]).to(hidden_BQD.dtype)
        if self.alibi is not None or self.same_place is not None:
            attention_mask = self._biased(hidden_BQD, attention_mask, position_ids, seen)
        if self.same_place is not None:
            assert attention_mask is not None
            attention_mask, biases = self._of_kinds(attention_mask, placed["kinds_BQK"])
            others |= biases
        if self.walk_bias is not None:
            assert attention_mask is not None
            others["walks"] = self._walks(placed["places_BK"], placed["below_BQK"], attention_mask.shape[-1])
        if "turns_BQ2" in placed:
            turns = placed["turns_BQ2"], placed["digits_BK"]
            others["spacing"] = EvenSpacing.from_turns(self.model.rotary_emb, hidden_BQD, *turns)
        if paths is not None:
            others["paths"] = paths
        if ("walks" in others or "spacing" in others) and not attends_along_paths(self):
            what = f"attention of the kind {self.config._attn_implementation} neither walks nor spaces numbers evenly"
            raise ModelError(f"{what}: leave attn_implementation as the lab sets it")
        output = super().forward(
            inputs_embeds=hidden_BQD,  # type: ignore[arg-type]
            attention_mask=attention_mask,
            position_ids=position_ids,  # type: ignore[arg-type]
            past_key_values=past_key_values,
            **others,
        )
        if len(self._forbidden) and output.logits is not None:
            self._forbidden = self._forbidden.to(output.logits.device)
            output.logits = output.logits.index_fill(-1, self._forbidden, float("-inf"))  # type: ignore[assignment]
        return output

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Adds the places of the tokens in the forward pass. (`generate` requires the name kwargs.)"""
        inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)  # type: ignore[misc]
        counts, padding = [inputs["input_ids"].shape[1]] * len(input_ids), left_padding(kwargs.get("attention_mask"))
        return inputs | row_places(self, input_ids.tolist(), counts, padding)

    def _of_kinds(
        self, mask_B1QK: torch.Tensor, kinds_BQK: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The mask with what the kinds of pairs hide, and what `SamePlaceLayer` needs to add their biases."""
        kinds_BQK = nn.functional.pad(kinds_BQK, (0, mask_B1QK.shape[-1] - kinds_BQK.shape[-1]))
        bias_LHC = self.same_place()  # type: ignore[misc]
        kinds, places_BQK = bias_LHC.shape[-1] - self.far_fade, (FAR_KIND - kinds_BQK).clamp(min=0)
        if self.sees_far:
            far_BQK = kinds_BQK <= FAR_KIND
            mask_B1QK = self._bounded(mask_B1QK, far_BQK)
            kinds_BQK = kinds_BQK.masked_fill(far_BQK, kinds - 1)
        one_hot_BQKC = nn.functional.one_hot(kinds_BQK.clamp(min=0), kinds).to(mask_B1QK.dtype)
        if self.far_fade:
            one_hot_BQKC = torch.cat([one_hot_BQKC, places_BQK[..., None].to(mask_B1QK.dtype)], -1)
        biases = {"bias_LHC": bias_LHC, "one_hot_BQKC": one_hot_BQKC}
        if not self.coupled:
            return mask_B1QK, biases
        hidden_B1QK = (kinds_BQK == HIDDEN)[:, None]
        least = torch.finfo(mask_B1QK.dtype).min
        return mask_B1QK.masked_fill(hidden_B1QK, least), {**biases, "unbounded": mask_B1QK}

    def _walks(self, places_BK: torch.Tensor, below_BQK: torch.Tensor, keys: int) -> dict[int, Walk]:
        """How the heads of each layer walk. `keys`: the number of keys, including free slots of the cache."""
        missing = keys - places_BK.shape[-1]
        downward = Downward.through(*(nn.functional.pad(part, (0, missing)) for part in (places_BK, below_BQK)))
        layers = zip(self.walking, self.walk_bias(), strict=True)  # type: ignore[misc]
        return {layer: Walk(downward, bias_N, layer, self.walk_hook) for layer, bias_N in layers}

    def _bounded(self, mask_B1QK: torch.Tensor, far_BQK: torch.Tensor) -> torch.Tensor:
        """The mask, lowered at the far digits of a query if it sees more of them than `far_at_most`."""
        if not self.far_at_most:
            return mask_B1QK
        far_B1QK = far_BQK[:, None] & (mask_B1QK == 0)
        too_many_B1Q1 = far_B1QK.sum(-1, keepdim=True) / self.far_at_most
        return mask_B1QK - (too_many_B1Q1.clamp(min=1).log() * far_B1QK).to(mask_B1QK.dtype)

    def _biased(
        self, hidden_BQD: torch.Tensor, mask: torch.Tensor | None, positions_BQ: torch.Tensor | None, seen: int
    ) -> torch.Tensor:
        """What is added to the scores, (B, H, Q, K), or (B, 1, Q, K) if it is the same for all heads; the lowest number
        of the dtype for keys that are not visible."""
        rows, tokens, device = hidden_BQD.shape[0], hidden_BQD.shape[1], hidden_BQD.device
        if mask is not None and mask.dim() == 4:
            visible, keys = mask, mask.shape[-1]
            if positions_BQ is None:
                raise ModelError("a mask of queries and keys needs position_ids, to compute distances")
            # A cache that already has slots for these tokens keeps every token at its position; others append them.
            cached = torch.arange(keys if seen == keys else seen, device=device).expand(len(positions_BQ), -1)
            positions_BK = cached if seen == keys else torch.cat([cached, positions_BQ], -1)
        else:
            keys = seen + tokens
            if mask is None:
                mask = torch.ones(rows, keys, dtype=torch.long, device=device)
            positions_BK = (mask.cumsum(-1) - 1).clamp(min=0)
            positions_BQ = positions_BK[:, seen:]
            at_K = torch.arange(keys, device=device)
            # padding sees itself: if all scores of a query were -inf, it would become NaN and so would all that follows
            visible = (at_K <= at_K[seen:, None]) & (mask[:, None, None].bool() | (at_K == at_K[seen:, None]))
        nothing = hidden_BQD.new_zeros(())
        bias_BHQK = self.alibi(positions_BQ, positions_BK).to(hidden_BQD.dtype) if self.alibi is not None else nothing
        return torch.where(visible, bias_BHQK, torch.finfo(hidden_BQD.dtype).min)
