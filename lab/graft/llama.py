"""A pretrained Llama with parts (lab/parts): ideas about positions and attention that are put into its layers.

The model goes through its parts and knows none of them. A part that depends on whole rows, such as one that finds the
places of digits, gets inputs that are computed from them. A forward pass over parts of rows (a prefix tree, or a step
with a cache) gets these inputs as an argument. Tokens may be forbidden: they have probability 0, both in training and
in generation.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far (Q without a cache), V words, H heads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.functional import pad
from transformers import Cache, LlamaConfig, LlamaForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from lab.config.parts import PartConfig, Parts, kinds, section_of
from lab.errors import ModelError
from lab.parts.part import Act, Part, Step
from lab.parts.positions import Positions
from lab.parts.rows import Rows, Span, Words
from lab.trees.layout import PartInputs, by_node, left_padding, row_inputs
from lab.trees.paths import PATH_ATTENTION, Paths, attends_along_paths

POSITIONS = "positions"
"""The name under which the position ids of queries and keys are among the inputs of parts."""


class GraftedLlama(LlamaForCausalLM):
    takes_ids = False
    """Whether position ids that are given count, although a part decides them; else the part overrules them."""

    def __init__(self, config: LlamaConfig) -> None:
        """`config.parts` holds the sections of the parts as dictionaries, by their kinds.

        Raises ModelError for a part that does not fit the model.
        """
        super().__init__(config)
        parts: Any = config.parts  # type: ignore[attr-defined]
        # sorted, so that the order in which a config names parts changes nothing, not even first weights
        sections = {kind: section_of(kind).model_validate(keys) for kind, keys in sorted(parts.items())}
        for layer in self.model.layers:
            layer.__class__ = GraftedLayer  # new layers would draw their weights again
        self.parts: Any = nn.ModuleDict({kind: section.build(config, sections) for kind, section in sections.items()})
        config._attn_implementation = self._attention()
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

    def change_parts(self, changes: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Changes keys of parts after training, or adds or removes a part that has no weights.

        Args:
            changes: the new values, by kinds of parts and keys; None for a part that is removed.

        Raises ModelError for a part that there is not, for one that the model does not have and that has weights, and
        for keys that must not change after training.
        """
        for kind, keys in changes.items():
            if keys is None:
                self._remove(kind)
            elif kind in self.parts:
                self.parts[kind].change(_changed(kind, keys, self.parts[kind].config.model_dump()))
            else:
                self._add(kind, _changed(kind, keys, {}))
        self.config.parts = {kind: part.config.model_dump() for kind, part in self.parts.items()}  # type: ignore[attr-defined]

    def _add(self, kind: str, section: PartConfig) -> None:
        sections: Parts = {other: part.config for other, part in self.parts.items()}
        part = section.build(self.config, sections)
        _check_that_it_has_no_weights(kind, part)
        part.attach(self)
        part.read(self.words, self.reverse)
        self.parts = nn.ModuleDict(dict(sorted([*self.parts.items(), (kind, part.train(self.training))])))
        self.set_attn_implementation(self._attention())

    def _remove(self, kind: str) -> None:
        if kind in self.parts:
            _check_that_it_has_no_weights(kind, self.parts[kind])
            del self.parts[kind]
            self.set_attn_implementation(self._attention())

    def _attention(self) -> str:
        """The attention that the parts need."""
        needs = self.has_pairs or self.beyond_scores
        return PATH_ATTENTION if needs else str(self.config._attn_implementation)

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
        wholes: Sequence[Sequence[int]] | torch.Tensor,
        spans: Sequence[tuple[int, int, int]] | None = None,
        padding: Sequence[int] = (0,),
        **others: Any,
    ) -> PartInputs:
        """What the parts must know about the tokens of a forward pass, and their position ids. For arguments see
        `Rows`."""
        spans = None if spans is None else [Span(*span) for span in spans]
        return self._inputs_of(Rows(wholes, self.words, spans, padding, **others))

    def _inputs_of(self, rows: Rows, ids_BQ: torch.Tensor | None = None) -> PartInputs:
        """See `part_inputs`. `ids_BQ`: position ids, if they are not those that a part decides."""
        inputs = {kind: part.inputs(rows) for kind, part in self.parts.items()}
        if any(part.distances for part in self.parts.values()):
            ids_BQ, ids_BK = (ids_BQ, ids_BQ) if ids_BQ is not None else self._ids_of_queries_and_keys(rows)
            inputs[POSITIONS] = {"ids_BQ": ids_BQ, "ids_BK": ids_BK}
        elif ids_BQ is None:
            ids_BQ = self._position_ids(rows)
        return PartInputs(ids_BQ, {kind: given for kind, given in inputs.items() if given})

    def _position_ids(self, rows: Rows) -> torch.Tensor | None:
        """The ids of the last part that decides them."""
        ids = [found for part in self.parts.values() if (found := part.position_ids(rows)) is not None]
        return ids[-1] if ids else None

    def _ids_of_queries_and_keys(self, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        so_far = rows.so_far()
        if (ids_BK := self._position_ids(so_far)) is None:
            return rows.of_queries(rows.in_text), rows.of_keys(rows.in_text)
        block = rows.block()
        ids_BQ = self._position_ids(rows) if block is None else ids_BK[:, block]
        assert ids_BQ is not None
        return ids_BQ, ids_BK

    def drawn(self, inputs: dict[str, dict[str, torch.Tensor]], index: int) -> dict[str, dict[str, torch.Tensor]]:
        """The inputs of a training batch with what parts draw for it; `index` is that of its first problem."""
        drawn = {kind: part.drawn(inputs[kind], index) for kind, part in self.parts.items() if kind in inputs}
        return {**inputs, **drawn}

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
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
            past_key_values: the cache.
            inputs_embeds: not supported, because parts read tokens.
            paths: the paths of a tree; the mask and the inputs of parts then have a row for each row of the paths.
            part_inputs: the inputs of the parts by their kinds (`lab.trees.layout`). If not given, they are computed
                from the tokens.
            others: the remaining arguments of LlamaForCausalLM.

        Raises ModelError if embeddings are given, or if there are tokens in the cache and parts get no inputs.
        """
        if inputs_embeds is not None:
            raise ModelError("a model with parts reads tokens: give input_ids, not inputs_embeds")
        seen = past_key_values.get_seq_length() if past_key_values is not None else 0
        given = self.entered(input_ids, attention_mask, position_ids, seen, paths, part_inputs)
        mask = given.mask
        if mask is None and past_key_values is None and len(self.parts):
            # without a mask, transformers takes a jump of ids for the start of another packed row
            mask = torch.ones_like(input_ids)
        others |= ({"acts": given.acts} if given.acts else {}) | ({"paths": paths} if paths is not None else {})
        output = super().forward(
            inputs_embeds=given.hidden_BQD,  # type: ignore[arg-type]
            attention_mask=mask,
            position_ids=given.ids_BQ,  # type: ignore[arg-type]
            past_key_values=past_key_values,
            **others,
        )
        if losses := [loss for act in given.acts if (loss := act.loss()) is not None]:
            output.loss = sum(losses, start=output.loss or 0)  # type: ignore[assignment]
        if len(self._forbidden) and output.logits is not None:
            self._forbidden = self._forbidden.to(output.logits.device)
            output.logits = output.logits.index_fill(-1, self._forbidden, float("-inf"))  # type: ignore[assignment]
        return output

    def entered(
        self,
        input_ids: torch.Tensor,
        mask: torch.Tensor | None,
        ids_BQ: torch.Tensor | None,
        seen: int = 0,
        paths: Paths | None = None,
        inputs: Mapping[str, Mapping[str, torch.Tensor]] | None = None,
    ) -> "Entered":
        """What enters the first layer; see `forward`. `seen`: how many tokens of each row are in the cache."""
        if inputs is None and len(self.parts):
            rows = Rows(input_ids, self.words, padding=left_padding(mask))
            found = self._inputs_of(rows, ids_BQ if self.takes_ids else None)
            if seen and (found.parts or (found.position_ids is not None and found.position_ids is not ids_BQ)):
                raise ModelError("tokens after a cache need part_inputs, which are computed from whole rows")
            inputs, decided_BQ = _on(input_ids.device, found)
            ids_BQ = ids_BQ if decided_BQ is None else decided_BQ
        inputs = inputs or {}
        if ids_BQ is None:
            padding_B1 = torch.tensor(left_padding(mask), device=input_ids.device)[:, None]
            at_Q = seen + torch.arange(input_ids.shape[1], device=input_ids.device)
            ids_BQ = (at_Q - padding_B1).clamp(min=0)
        hidden_BQD = self.model.embed_tokens(input_ids)
        for kind, part in self.parts.items():
            hidden_BQD = part.embedded(hidden_BQD, by_node(inputs.get(kind, {}), paths), ids_BQ)
        visible = None
        if self.has_pairs:
            visible = visible_keys(input_ids, mask, seen)
            mask = torch.where(visible, hidden_BQD.new_zeros(()), torch.finfo(hidden_BQD.dtype).min)
            inputs = {kind: _to_keys(given, visible.shape[-1]) for kind, given in inputs.items()}
        acts = self._acts(inputs, Step(hidden_BQD, self.model.rotary_emb, self.training, visible))
        if mask is not None:
            for act in acts:
                mask = act.shared(mask)
        return Entered(hidden_BQD, mask, ids_BQ, acts)

    def _acts(self, inputs: Mapping[str, Mapping[str, torch.Tensor]], step: Step) -> list[Act]:
        """What the parts do in a forward pass. Raises ModelError if the model's attention cannot compute it."""
        if self.beyond_scores and not attends_along_paths(self):
            what = f"attention of the kind {self.config._attn_implementation} knows no parts"
            raise ModelError(f"{what}: leave attn_implementation as the lab sets it")
        if ids := inputs.get(POSITIONS):
            step = step._replace(positions=self.positions_of(**ids))
        acts = [part.act(inputs.get(kind, {}), step) for kind, part in self.parts.items()]
        return [act for act in acts if act is not None]

    def positions_of(self, ids_BQ: torch.Tensor, ids_BK: torch.Tensor) -> Positions:
        """How far apart tokens are, as the part says that decides their ids."""
        found = [one for part in self.parts.values() if (one := part.positions(ids_BQ, ids_BK)) is not None]
        return found[-1] if found else Positions.of(ids_BQ, ids_BK)

    def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Adds the inputs of parts for the tokens in the forward pass. (`generate` requires the name kwargs.)"""
        inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)  # type: ignore[misc]
        counts, padding = [inputs["input_ids"].shape[1]] * len(input_ids), left_padding(kwargs.get("attention_mask"))
        return inputs | row_inputs(self, input_ids, counts, padding)


class Entered(NamedTuple):
    """What enters the first layer, and what parts do in all layers."""

    hidden_BQD: torch.Tensor
    mask: torch.Tensor | None
    ids_BQ: torch.Tensor
    """Position ids; 1 row may stand for all."""
    acts: list[Act]


class GraftedLayer(LlamaDecoderLayer):
    def forward(  # type: ignore[override]
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        acts: Sequence[Act] = (),
        **others: Any,
    ) -> torch.Tensor:
        """A Llama layer with what the parts do to the scores of its attention. `acts`: what they do
        in this forward pass."""
        mask = self.changed(attention_mask, acts)
        return super().forward(hidden_states, mask, **others, acts=acts)  # type: ignore[call-arg]

    def changed(self, mask: torch.Tensor | None, acts: Sequence[Act]) -> torch.Tensor | None:
        """What is added to the scores of this layer."""
        for act in acts if mask is not None else ():
            mask = act.mask(self.self_attn.layer_idx, mask)  # type: ignore[arg-type]
        return mask


def visible_keys(input_ids: torch.Tensor, mask: torch.Tensor | None, seen: int) -> torch.Tensor:
    """Which keys each query sees, (B, 1, Q, K), or (1, 1, Q, K) if there is no padding.

    Args:
        input_ids: the tokens of a forward pass, (B, Q).
        mask: (B, K), 0 for padding, or (B, 1, Q, K), True for visible keys; None if there is no padding.
        seen: how many tokens of each row are in the cache.
    """
    if mask is not None and mask.dim() == 4:
        return mask
    at_K = torch.arange(seen + input_ids.shape[1], device=input_ids.device)
    causal_QK = at_K <= at_K[seen:, None]
    if mask is None:
        return causal_QK[None, None]
    # padding sees itself: if all scores of a query were -inf, it would become NaN and so would all that follows
    return causal_QK & (mask[:, None, None].bool() | (at_K == at_K[seen:, None]))


def _to_keys(inputs: Mapping[str, torch.Tensor], keys: int) -> dict[str, torch.Tensor]:
    """Inputs with zeros for free slots of the cache. `keys`: the number of keys, with these slots."""

    def padded(name: str, part: torch.Tensor) -> torch.Tensor:
        return pad(part, (0, keys - part.shape[-1])) if name.endswith(("_BK", "_BQK")) else part

    return {name: padded(name, part) for name, part in inputs.items()}


def _changed(kind: str, keys: Mapping[str, Any], before: Mapping[str, Any]) -> PartConfig:
    """The section of a part with new values of keys. Raises ModelError as `GraftedLlama.change_parts` does."""
    try:
        section = section_of(kind)
        if fixed := [key for key in keys if key in section.model_fields and key not in section.LATER]:
            raise ModelError(f"parts.{kind}.{fixed[0]} cannot change after training")
        return section.model_validate({**before, **keys})
    except KeyError:
        raise ModelError(f"parts.{kind}: no such part; parts here: {', '.join(kinds())}") from None
    except ValueError as error:
        raise ModelError(f"parts.{kind}: {_first(error)}") from None


def _check_that_it_has_no_weights(kind: str, part: Part) -> None:
    if any(True for _ in part.parameters()):
        raise ModelError(f"parts.{kind} has weights: the model must be trained with it, or without it")


def _on(device: torch.device, found: PartInputs) -> tuple[dict[str, dict[str, torch.Tensor]], torch.Tensor | None]:
    """The inputs of parts, and position ids, on the device."""
    parts = {kind: {name: part.to(device) for name, part in given.items()} for kind, given in found.parts.items()}
    return parts, None if found.position_ids is None else found.position_ids.to(device)


def _first(error: ValueError) -> str:
    errors = getattr(error, "errors", list)()
    return f"{'.'.join(map(str, errors[0]['loc']))}: {errors[0]['msg']}" if errors else str(error)
