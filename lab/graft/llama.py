"""A pretrained Llama with parts (lab/parts): ideas about positions and attention that are put into its layers.

The model goes through its parts and knows none of them. A part that depends on whole rows, such as one that finds the
places of digits, gets inputs that are computed from them. A forward pass over parts of rows (a prefix tree, or a step
with a cache) gets these inputs as an argument. Tokens may be forbidden: they have probability 0, both in training and
in generation.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far (Q without a cache), V words, H heads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.functional import pad
from transformers import Cache, LlamaConfig, LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from lab.config.parts import PartConfig, Parts, section_of
from lab.errors import ModelError
from lab.parts.part import Act, Part, Step
from lab.parts.rows import Rows, Span, Words
from lab.trees.layout import PartInputs, by_node, left_padding, row_inputs
from lab.trees.paths import PATH_ATTENTION, Paths, attends_along_paths


class GraftedLlama(LlamaForCausalLM):
    def __init__(self, config: LlamaConfig) -> None:
        """`config.parts` holds the sections of the parts as dictionaries, by their kinds.

        Raises ModelError for a part that does not fit the model.
        """
        super().__init__(config)
        parts: Any = config.parts  # type: ignore[attr-defined]
        sections = {kind: section_of(kind).model_validate(keys) for kind, keys in parts.items()}
        self.model.layers = nn.ModuleList(GraftedLayer(config, layer) for layer in range(len(self.model.layers)))
        self.parts: Any = nn.ModuleDict({kind: section.build(config, sections) for kind, section in sections.items()})
        if self.has_pairs:
            config._attn_implementation = PATH_ATTENTION
        for part in self.parts.values():
            part.attach(self)
        self.new_tokens: list[int] = []
        """Tokens that the base model does not have."""
        self.words, self.reverse = Words([]), "total"
        self._forbidden = torch.empty(0, dtype=torch.long, device="cpu")
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, Part):
            module.reset()

    def know_tokens(self, words: Sequence[str], new: Sequence[int], forbidden: Sequence[int], reverse: str) -> None:
        """Tells the model and its parts the vocabulary.

        Args:
            words: the vocabulary in the order of its ids.
            new: ids of tokens that the base model does not have.
            forbidden: ids of tokens that get probability 0.
            reverse: which numbers are written lowest digit first: "total" for all, "answer", or "none".

        Raises ModelError if a part cannot work with these tokens.
        """
        self.new_tokens, self.words, self.reverse = list(new), Words(words, forbidden), reverse
        self._forbidden = torch.tensor(forbidden, dtype=torch.long)
        for part in self.parts.values():
            part.read(self.words, reverse)

    def change_parts(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Changes keys of parts after training, or adds a part that has no weights.

        Args:
            changes: the new values, by kinds of parts and keys.

        Raises ModelError for a part that the model does not have and that has weights, and for keys that must not
        change after training.
        """
        for kind, keys in changes.items():
            section = section_of(kind)
            there = self.parts[kind].config if kind in self.parts else None
            if fixed := [key for key in keys if key not in section.LATER]:
                raise ModelError(f"parts.{kind}.{fixed[0]} cannot change after training")
            try:
                now = section.model_validate({**(there.model_dump() if there else {}), **keys})
            except ValueError as error:
                raise ModelError(f"parts.{kind}: {_first(error)}") from None
            if there is None:
                self._add(kind, now)
            else:
                self.parts[kind].change(now)

    def remove_part(self, kind: str) -> None:
        """Removes a part that has no weights, if the model has it."""
        if kind in self.parts:
            del self.parts[kind]

    def _add(self, kind: str, section: PartConfig) -> None:
        sections: Parts = {other: part.config for other, part in self.parts.items()}
        part = section.build(self.config, sections)
        if any(True for _ in part.parameters()):
            raise ModelError(f"parts.{kind} has weights: the model must be tuned with it")
        part.attach(self)
        part.read(self.words, self.reverse)
        self.parts[kind] = part

    @property
    def has_pairs(self) -> bool:
        """Whether a part needs tables over pairs of tokens."""
        return any(part.pairs for part in self.parts.values())

    @property
    def beyond_scores(self) -> str | None:
        """A part that changes more than the scores of attention; None if there is none."""
        return next((kind for kind, part in self.parts.items() if part.beyond_scores), None)

    def shareable(self, tokens: Sequence[int], agreed: int) -> int:
        """How many of the first `agreed` tokens can be shared with another sequence, because their states do not depend
        on later tokens."""
        return min(
            (part.shareable(self.words.of(tokens[:agreed]), agreed) for part in self.parts.values()), default=agreed
        )

    def part_inputs(
        self,
        wholes: Sequence[Sequence[int]],
        spans: Sequence[tuple[int, int, int]] | None = None,
        padding: Sequence[int] = (0,),
        written: bool = False,
        supervised: bool = False,
    ) -> PartInputs:
        """What the parts must know about the tokens of a forward pass, and their position ids. For arguments see
        `Rows`."""
        spans = None if spans is None else [Span(*span) for span in spans]
        rows = Rows(wholes, self.words, spans, padding, written, supervised)
        ids = [found for part in self.parts.values() if (found := part.position_ids(rows)) is not None]
        inputs = {kind: part.inputs(rows) for kind, part in self.parts.items()}
        return PartInputs(ids[-1] if ids else None, {kind: given for kind, given in inputs.items() if given})

    def drawn(self, inputs: dict[str, dict[str, torch.Tensor]], index: int) -> dict[str, dict[str, torch.Tensor]]:
        """The inputs of a training batch with what parts draw for it; `index` is that of its first problem."""
        return {kind: self.parts[kind].drawn(given, index) for kind, given in inputs.items()}

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.Tensor | None = None,
        paths: Paths | None = None,
        part_inputs: dict[str, dict[str, torch.Tensor]] | None = None,
        **others: Any,
    ) -> CausalLMOutputWithPast:
        """The forward pass of LlamaForCausalLM with the parts. In training, the losses of the parts, if they have any,
        are added to `loss`.

        Args:
            input_ids: (B, Q).
            attention_mask: (B, K), 0 for padding, or (B, 1, Q, K), True for visible keys.
            position_ids: (B, Q).
            past_key_values: the cache, as transformers calls it before 5.24.
            cache: the cache, as transformers calls it from 5.24 on.
            inputs_embeds: not supported, because parts read tokens.
            paths: the paths of a tree; the mask and the inputs of parts then have a row for each row of the paths.
            part_inputs: the inputs of the parts by their kinds (`lab.trees.layout`). If not given, they are computed
                from the tokens.
            others: the remaining arguments of LlamaForCausalLM.

        Raises ModelError if embeddings are given, or if there are tokens in the cache and parts get no inputs.
        """
        if inputs_embeds is not None:
            raise ModelError("a model with parts reads tokens: give input_ids, not inputs_embeds")
        past_key_values = past_key_values if cache is None else cache
        seen = past_key_values.get_seq_length() if past_key_values is not None else 0
        if part_inputs is None and len(self.parts):
            given = row_inputs(self, input_ids.tolist(), padding=left_padding(attention_mask))
            part_inputs, position_ids = given["part_inputs"], given.get("position_ids", position_ids)
            if seen and (given["part_inputs"] or "position_ids" in given):
                raise ModelError("tokens after a cache need part_inputs, which are computed from whole rows")
        inputs = part_inputs or {}
        hidden_BQD = self.model.embed_tokens(input_ids)
        for kind, part in self.parts.items():
            if kind in inputs:
                hidden_BQD = part.embedded(hidden_BQD, by_node(inputs[kind], paths))
        if self.has_pairs:
            attention_mask = added_mask(hidden_BQD, attention_mask, seen)
            inputs = {kind: _to_keys(given, attention_mask.shape[-1]) for kind, given in inputs.items()}
        acts = self._acts(inputs, hidden_BQD)
        if attention_mask is not None:
            for act in acts:
                attention_mask = act.shared(attention_mask)
        others |= ({"acts": acts} if acts else {}) | ({"paths": paths} if paths is not None else {})
        output = super().forward(
            inputs_embeds=hidden_BQD,  # type: ignore[arg-type]
            attention_mask=attention_mask,
            position_ids=position_ids,  # type: ignore[arg-type]
            past_key_values=past_key_values,
            **others,
        )
        if losses := [loss for act in acts if (loss := act.loss()) is not None]:
            output.loss = sum(losses, start=output.loss or 0)  # type: ignore[assignment]
        if len(self._forbidden) and output.logits is not None:
            self._forbidden = self._forbidden.to(output.logits.device)
            output.logits = output.logits.index_fill(-1, self._forbidden, float("-inf"))  # type: ignore[assignment]
        return output

    def _acts(self, inputs: Mapping[str, Mapping[str, torch.Tensor]], hidden_BQD: torch.Tensor) -> list[Act]:
        """What the parts do in a forward pass. Raises ModelError if the model's attention cannot compute it."""
        if self.beyond_scores and not attends_along_paths(self):
            what = f"attention of the kind {self.config._attn_implementation} knows no parts"
            raise ModelError(f"{what}: leave attn_implementation as the lab sets it")
        step = Step(hidden_BQD, self.model.rotary_emb, self.training)
        acts = [part.act(inputs.get(kind, {}), step) for kind, part in self.parts.items()]
        return [act for act in acts if act is not None]

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Adds the inputs of parts for the tokens in the forward pass. (`generate` requires the name kwargs.)"""
        inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)  # type: ignore[misc]
        counts, padding = [inputs["input_ids"].shape[1]] * len(input_ids), left_padding(kwargs.get("attention_mask"))
        return inputs | row_inputs(self, input_ids.tolist(), counts, padding)


class GraftedLayer(LlamaDecoderLayer):
    def forward(  # type: ignore[override]
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        acts: Sequence[Act] = (),
        **others: Any,
    ) -> torch.Tensor:
        """A Llama layer with what the parts do to its states and to the scores of its attention. `acts`: what they do
        in this forward pass."""
        layer = self.self_attn.layer_idx
        for act in acts:
            hidden_states = act.entering(layer, hidden_states)
            if attention_mask is not None:
                attention_mask = act.mask(layer, attention_mask)
        return super().forward(hidden_states, attention_mask, **others, acts=acts)  # type: ignore[call-arg]


def added_mask(hidden_BQD: torch.Tensor, mask: torch.Tensor | None, seen: int) -> torch.Tensor:
    """What is added to the scores, (B, 1, Q, K): 0 for visible keys, the lowest number of the dtype for others.

    Args:
        hidden_BQD: states, for their dtype and device.
        mask: (B, K), 0 for padding, or (B, 1, Q, K), True for visible keys; None if there is no padding.
        seen: how many tokens of each row are in the cache.
    """
    rows, tokens, device = hidden_BQD.shape[0], hidden_BQD.shape[1], hidden_BQD.device
    if mask is not None and mask.dim() == 4:
        visible = mask
    else:
        at_K = torch.arange(seen + tokens, device=device)
        if mask is None:
            mask = torch.ones(rows, seen + tokens, dtype=torch.long, device=device)
        # padding sees itself: if all scores of a query were -inf, it would become NaN and so would all that follows
        visible = (at_K <= at_K[seen:, None]) & (mask[:, None, None].bool() | (at_K == at_K[seen:, None]))
    return torch.where(visible, hidden_BQD.new_zeros(()), torch.finfo(hidden_BQD.dtype).min)


def _to_keys(inputs: Mapping[str, torch.Tensor], keys: int) -> dict[str, torch.Tensor]:
    """Inputs with zeros for free slots of the cache. `keys`: the number of keys, with these slots."""

    def padded(name: str, part: torch.Tensor) -> torch.Tensor:
        return pad(part, (0, keys - part.shape[-1])) if name.endswith(("_BK", "_BQK")) else part

    return {name: padded(name, part) for name, part in inputs.items()}


def _first(error: ValueError) -> str:
    errors = getattr(error, "errors", list)()
    return f"{'.'.join(map(str, errors[0]['loc']))}: {errors[0]['msg']}" if errors else str(error)
