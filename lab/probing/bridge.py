"""Any model of the lab, opened in TransformerLens (`TransformerBridge`, version 4).

A subject is a bridge together with a writer, which knows how the model is asked for sums. Hook points have
TransformerLens' names, such as blocks.3.attn.hook_pattern (B, H, T, T), blocks.3.attn.hook_z (B, T, H, head width) and
blocks.3.hook_resid_pre (B, T, D). Only activations that are asked for are kept: all activations of even a small model
would take gigabytes for 64 prompts.

Shapes: B sums, T tokens, V words of the vocabulary, H heads, D width of the model.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.nn.utils.rnn import pad_sequence
from transformer_lens.model_bridge import TransformerBridge
from transformers import PreTrainedModel
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.schema import ModelConfig
from lab.errors import ModelError, TaskError, in_one_line
from lab.graft.llama import GraftedLlama
from lab.models import adapters, loading, sources
from lab.models.swaps import swap_of
from lab.numbers.sampling import Cell, problem
from lab.probing.addition.positions import NotatedSums, Sums, SumWriter, TextSums
from lab.probing.components import SITES, Component, Site
from lab.probing.contrast import Asked, Tokens
from lab.probing.live_patterns import make_live
from lab.probing.own_hooks import OwnBridge
from lab.probing.readings import NotationReader, TextReader
from lab.progress import quiet_libraries
from lab.text.notation import Notation

Hook: TypeAlias = tuple[str, Callable[..., torch.Tensor]]
"""The name of a hook point, and a function that returns its new activation: change(activation, hook=point)."""

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 2e-2, torch.float16: 5e-3}
"""How far logits that are computed in two ways may differ, as a share of the largest, by the type of the weights."""
_LOST = "A hook on .* returned a modified tensor"
"""How the bridge warns of a change that has no effect."""
_CLOSED = "Cannot add hook"
"""How the bridge refuses a hook point that its settings switch off."""
_EXAMPLES = ((12, 9), (358, 426), (95, 5))
"""Sums on which a bridge is checked. Their lengths differ, so that some rows have padding."""


class Activations(dict[str, torch.Tensor]):
    """Activations by the name under which they were asked for. A hook point may have several names, such as
    blocks.0.attn.hook_z and blocks.0.attn.o.hook_in; each of them finds its activation."""

    def __init__(self, points: Mapping[str, Any]) -> None:
        """`points`: all hook points by all of their names."""
        super().__init__()
        self._points = points

    def __missing__(self, name: str) -> torch.Tensor:
        for other in self._others(name):
            return self[other]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or next(self._others(name), None) is not None

    def _others(self, name: object) -> Iterator[str]:
        point = self._points.get(name)  # type: ignore[call-overload]
        return (other for other in self if point is not None and self._points[other] is point)


class Subject:
    """An opened model, and a writer that says how it is asked for sums."""

    def __init__(self, name: str, bridge: TransformerBridge | OwnBridge, writer: SumWriter) -> None:
        self.name, self.writer = name, writer
        self.bridge: Any = bridge
        self.layers: int = bridge.cfg.n_layers
        self.heads: int = bridge.cfg.n_heads
        self.width: int = bridge.cfg.d_model
        self.key_value_heads: int = bridge.cfg.n_key_value_heads or self.heads
        self.neurons: int = bridge.cfg.d_mlp or 0

    @classmethod
    def from_bridge(cls, opened: TransformerBridge, prompt: str = "Add: {a} + {b} = ", name: str = "") -> "Subject":
        """A subject from any TransformerBridge with a tokenizer, such as `TransformerBridge.boot_transformers("gpt2")`.

        `prompt`: a text with {a} and {b} in this order; see `TextSums`. It should not begin with {a}: many heads attend
        to the first token whatever it is, and would seem to look at a digit.
        Raises ModelError for anything but a bridge, for a bridge without a tokenizer, and for a tokenizer in whose
        tokens digits cannot be located; TaskError for a prompt with other fields.
        """
        if not hasattr(opened, "run_with_hooks"):
            what = f"{type(opened).__name__} {str(opened)[:40]!r}"
            raise ModelError(f"{what}: should be a TransformerBridge; Subject.from_name opens a model by its name")
        tokenizer: Any = opened.tokenizer
        if tokenizer is None:
            raise ModelError("this bridge has no tokenizer; give a writer of your own: Subject(name, bridge, writer)")
        subject = cls(name or str(opened.cfg.model_name), opened, TextSums(tokenizer, prompt))
        subject.sums(_EXAMPLES)  # raises ModelError if digits cannot be located in tokens
        return subject

    @classmethod
    def from_name(cls, name: str, prompt: str = "") -> "Subject":
        """A run directory, or any causal model of Hugging Face by its name or folder; see `open_model`."""
        return open_model(name, prompt)

    @property
    def components(self) -> list[Component]:
        """Every head and every MLP, layer by layer."""
        heads = [[Component("head", layer, head) for head in range(self.heads)] for layer in range(self.layers)]
        return [one for layer, own in enumerate(heads) for one in (*own, Component("mlp", layer))]

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites of the residual stream in each layer; without "mid" if attention and MLP run in parallel, or if the
        stream is not the sum of what they write."""
        parallel = "blocks.0.hook_resid_mid" not in self.bridge.hook_dict
        no_mid = parallel or self.more_than_sums is not None
        return tuple(site for site in SITES if not (no_mid and site == "mid"))

    @cached_property
    @torch.inference_mode()
    def more_than_sums(self) -> int | None:
        """The first layer that does more to the residual stream than add what its attention and its MLP write, such as
        a layer with a norm after the sum; None if there is no such layer."""
        ends = ("hook_resid_pre", "hook_attn_out", "hook_mlp_out", "hook_resid_post")
        points = self.bridge.hook_dict
        for layer in range(self.layers):
            names = [f"blocks.{layer}.{end}" for end in ends]
            if any(name not in points for name in names):
                return layer
            try:
                _, found = self.activations(_examples(self.writer), names)
            except ModelError:  # a run does not reach one of them
                return layer
            before, by_heads, by_mlp, after = (found[name].float() for name in names)
            scale = TOLERANCE.get(found[names[-1]].dtype, 1e-2) * float(after.abs().max())
            if not torch.allclose(before + by_heads + by_mlp, after, rtol=0, atol=scale):
                return layer
        return None

    @property
    def device(self) -> torch.device:
        return next(self.bridge.parameters()).device

    def sums(self, numbers: Sequence[tuple[int, int]]) -> Sums:
        """Additions as the subject reads them. Raises ModelError for a subject that is not asked for any."""
        if not hasattr(self.writer, "write"):
            raise ModelError(f"{self.name}: it is asked for no sums of two numbers; use pairs of its own tasks")
        return Sums.of(self.writer, numbers)

    def logits(self, asked: Asked, hooks: Sequence[Hook] = ()) -> torch.Tensor:
        """The logits (B, T, V). The hooks are removed afterwards, even after an error. Gradients are recorded unless
        torch's gradient mode is off.

        Raises TaskError for prompts that are too long for a model with fixed positions, and ModelError for a hook point
        that does not exist or is switched off, for a change of attention patterns that would have no effect, and for
        sums with several digits in one token: instruments of additions measure at the token of a digit.
        """
        self._check_hook_points(name for name, _ in hooks)
        if isinstance(asked, Sums):
            asked.check_digits()
        tokens, most = asked.tokens_BT.shape[1], self.bridge.cfg.n_ctx
        too_long = TaskError(
            f"{self.name}: these prompts take {tokens} tokens, but it reads at most {most}; use shorter numbers"
        )
        if tokens > most and self.bridge.cfg.positional_embedding_type == "standard":
            raise too_long  # a GPU would not survive an index beyond the table of positions
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=_LOST, category=UserWarning)
                return self.bridge.run_with_hooks(asked.tokens_BT.to(self.device), fwd_hooks=list(hooks))
        except UserWarning as lost:
            raise ModelError(f"{self.name}: its attention patterns can be read, but not changed") from lost
        except (IndexError, RuntimeError, ValueError) as error:
            if str(error).startswith(_CLOSED):
                raise ModelError(f"{self.name}: {in_one_line(error)}") from error
            if tokens <= most:
                raise
            raise too_long from error

    def activations(
        self, asked: Asked, names: Sequence[str], hooks: Sequence[Hook] = ()
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The logits (B, T, V), and the activations by any name of their hook point, `hook.name` included. Raises the
        errors of `logits`, and ModelError for a hook point that no run reaches."""
        self._check_hook_points(names)
        found = Activations(self.bridge.hook_dict)
        logits_BTV = self.logits(asked, [*hooks, *keeping(names, found)])
        if silent := [name for name in names if name not in found]:
            raise ModelError(f"{self.name}: no run reaches hook point {silent[0]}")
        return logits_BTV, found

    def _check_hook_points(self, names: Iterable[str]) -> None:
        points = self.bridge.hook_dict
        for name in names:
            if name not in points:
                parallel = name.endswith("mid") and name.replace("mid", "pre") in points
                why = ": its attention and its MLP read the same stream, so there is none between them"
                raise ModelError(f"{self.name}: there is no hook point {name}{why if parallel else ''}")


def keeping(names: Sequence[str], kept: dict[str, torch.Tensor], apart: bool = False) -> list[Hook]:
    """Hooks that put activations into `kept`, by the given names (a hook point may have several names).

    `apart`: give each hook point a tensor of its own. Without this, the skip connection may read the same tensor, and
    the gradient with respect to it would include the gradient through the skip connection.
    """

    def keep(activation: torch.Tensor, hook: Any, name: str) -> torch.Tensor:
        # return what is kept, so that the model goes on with this very tensor and not with another view of it
        return kept.setdefault(name, activation.view_as(activation) if apart else activation)

    return [(name, partial(keep, name=name)) for name in names]


def open_model(name: str, template: str = "") -> Subject:
    """Opens a run directory of lab pretrain or lab finetune, a folder of adapters, or a pretrained model.

    Args:
        name: the folder, or the name of the pretrained model.
        template: how a pretrained model is asked (`TextSums`); models from scratch are asked in their own notation.

    Raises ModelError if the model is not available, or if the bridge does not compute what the model computes, and
    TaskError for a template with other fields.
    """
    quiet_libraries()
    folder = Path(sources.resolve(name))
    if loading.is_scratch(folder):
        run = loading.load_scratch(folder)
        adds = isinstance(run.notation, Notation) and any(task.key == "add_integer" for task in run.notation.tasks)
        writer = NotatedSums if adds else NotationReader
        return bridge(name, run.model, writer(run.notation, run.tokenizer))  # type: ignore[arg-type]
    model, tokenizer = loading.load(ModelConfig(name=name, dtype="float32"))
    return bridge(name, model, TextSums(tokenizer, template, swap_of(model).format), tokenizer)


def bridge(
    name: str, model: PreTrainedModel, writer: SumWriter, tokenizer: PreTrainedTokenizerBase | None = None
) -> Subject:
    """A subject from a model in memory. The bridge changes the model: do not use the model itself afterwards.

    Adapters that could not be merged (into bfloat16 or quantized weights) stay beside the weights. Activations are then
    exact, but the weights that the bridge shows, such as W_Q, are those of the base model.
    Raises ModelError if the bridge does not support the model, if its logits are not the model's, or if attention
    patterns do not sum to one.
    """
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    if adapters.has_adapters(model):
        model = model.base_model.model  # type: ignore[assignment]
    examples = _examples(writer)
    expected_BTV = _logits_before(name, model, examples)
    if isinstance(model, GraftedLlama):
        subject = Subject(name, OwnBridge(model, tokenizer), writer)
        check(subject, examples, expected_BTV, sums_to_one=False)  # some heads may stop nowhere
        return subject
    architecture = str((model.config.architectures or [type(model).__name__])[0])
    try:
        opened = build_bridge_from_module(model, architecture=architecture, hf_config=model.config, tokenizer=tokenizer)
    except Exception as error:
        raise ModelError(f"{name}: no bridge for {architecture}: {in_one_line(error)}") from error
    if not _patterns_count(name, opened, examples):
        make_live(model, [block.attn for block in opened.blocks])
    subject = Subject(name, opened, writer)
    check(subject, examples, expected_BTV)
    return subject


def _examples(writer: Any) -> Asked:
    """A few prompts that the model can read, on which its bridge is checked."""
    if isinstance(writer, TextReader) and not writer.takes_two:
        return Tokens(torch.tensor([writer.reading("12 and 345 = ").ids]))
    if hasattr(writer, "write"):
        return replace(Sums.of(writer, _EXAMPLES), digits_apart=False)  # type: ignore[arg-type]
    task = writer.tasks[0]  # type: ignore[union-attr]
    length = min(3, task.tested_lengths[-1])
    problems = [problem(Cell(task, length), "train", 0, index) for index in range(3)]
    ids = [torch.tensor(writer.problem(one).ids) for one in problems]
    return Tokens(pad_sequence(ids, batch_first=True, padding_value=writer.pad))  # type: ignore[union-attr]


@torch.inference_mode()
def _logits_before(name: str, model: PreTrainedModel, asked: Asked) -> torch.Tensor:
    """The model's own logits (B, T, V), before a bridge replaces parts of it."""
    try:
        return model(asked.tokens_BT.to(model.device)).logits
    except Exception as error:  # of any layer
        raise ModelError(f"{name}: the model itself cannot read a prompt: {in_one_line(error)}") from error


@torch.inference_mode()
def _patterns_count(name: str, opened: TransformerBridge, asked: Asked) -> bool:
    """Whether a change of attention patterns changes what heads write.

    Raises ModelError for a model with layers that have no heads of attention, and if the bridge cannot run it.
    """
    layers = range(opened.cfg.n_layers)
    for layer, end in product(layers, ("hook_resid_pre", "attn.hook_pattern", "attn.hook_z", "attn.hook_v")):
        if f"blocks.{layer}.{end}" not in opened.hook_dict:
            raise ModelError(f"{name}: layer {layer} has no {end}; probing needs heads of attention in every layer")
    point = "blocks.0.attn.hook_z"
    first: list[Any] = [("blocks.0.attn.hook_pattern", _only_first)]
    runs: list[dict[str, torch.Tensor]] = [{}, {}]
    try:
        with warnings.catch_warnings(action="ignore"):  # the bridge warns of a change that is lost
            for hooks, kept in zip(([], first), runs, strict=True):
                opened.run_with_hooks(
                    asked.tokens_BT.to(opened.cfg.device), fwd_hooks=[*hooks, *keeping([point], kept)]
                )
    except Exception as error:  # of any layer
        raise ModelError(f"{name}: its bridge cannot run it: {in_one_line(error)}") from error
    return not torch.equal(runs[0][point], runs[1][point])


def _only_first(pattern_BHTT: torch.Tensor, hook: Any) -> torch.Tensor:
    """All attention goes to the first token."""
    changed = torch.zeros_like(pattern_BHTT)
    changed[..., 0] = 1
    return changed


@torch.inference_mode()
def check(subject: Subject, asked: Asked, expected_BTV: torch.Tensor, sums_to_one: bool = True) -> None:
    """Raises ModelError unless the subject has these logits and, if `sums_to_one`, each query's attention sums to
    one."""
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in range(subject.layers)]
    found: dict[str, torch.Tensor] = {}
    hooks: list[Any] = keeping(patterns, found)
    logits_BTV = subject.bridge.run_with_hooks(asked.tokens_BT.to(subject.device), fwd_hooks=hooks)
    if silent := [name for name in patterns if name not in found]:
        raise ModelError(f"{subject.name}: no run reaches {silent[0]}; probing needs the attention of every layer")
    scale = expected_BTV.masked_fill(expected_BTV.isinf(), 0).float().abs().max()  # -inf: forbidden tokens
    atol = TOLERANCE[logits_BTV.dtype] * float(scale)
    if not torch.allclose(logits_BTV.float(), expected_BTV.float(), rtol=0, atol=atol):
        gap = float((logits_BTV - expected_BTV).nan_to_num(0).abs().max())
        raise ModelError(f"{subject.name}: the bridge's logits differ from the model's by up to {gap:.3g}")
    for name in patterns if sums_to_one else ():
        sums_BHT = found[name].float().sum(-1)
        if not torch.allclose(sums_BHT, torch.ones_like(sums_BHT), atol=1e-2):
            raise ModelError(f"{subject.name}: {name} does not sum to one: {float(sums_BHT.min()):.3g}")


def check_components(subject: Subject, components: Iterable[Component]) -> None:
    """Raises ModelError for a component that the subject does not have."""
    many = {"k": subject.key_value_heads, "v": subject.key_value_heads, "neuron": subject.neurons}
    for one in components:
        if not (0 <= one.layer < subject.layers and 0 <= one.head < many.get(one.kind, subject.heads)):
            has = f"{subject.layers} layers of {subject.heads} heads"
            has += f", {subject.key_value_heads} key-value heads and {subject.neurons} neurons" * (one.kind in many)
            raise ModelError(f"{subject.name} has no {one}, but {has}")
