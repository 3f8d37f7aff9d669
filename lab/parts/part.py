"""The contract of a part; `lab/parts/__init__.py` is its page.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far, H heads, D width of a head or of the model.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from lab.config.parts import PartConfig
from lab.errors import ModelError
from lab.parts.positions import Positions
from lab.parts.rows import Rows, Words

Inputs = Mapping[str, torch.Tensor]
"""What a part must know about the tokens of a forward pass. The names end in the shapes: _BQ, _BK or _BQK, and after
these letters the sizes of other dimensions."""


class Step(NamedTuple):
    """What a part may need of a forward pass besides its inputs."""

    hidden_BQD: torch.Tensor
    """The embeddings; their dtype and device are those of the pass."""
    rotary: nn.Module
    """The model's rotary embedding."""
    training: bool
    visible_BHQK: torch.Tensor | None = None
    """Which keys each query sees before any part changes that, with 1 for all heads; None if no part has `pairs`. The
    last of them is the query itself."""
    positions: Positions | None = None
    """The position ids of queries and keys; None if no part has `distances`."""


class Act:
    """What a part does in one forward pass. A part overrides what it needs."""

    rescores: ClassVar[bool] = False
    """Whether it has `scores`."""
    own_heads = 0
    """For how many of the last heads of each layer it has `weights`. At most one part of a model has any."""

    def shared(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        """Changes what is added to the scores of all layers. 1 may stand for all heads."""
        return mask_BHQK

    def mask(self, layer: int, mask_BHQK: torch.Tensor) -> torch.Tensor:
        """Changes what is added to the scores of a layer."""
        return mask_BHQK

    def queries(self, query_BHQD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """The queries that attend to words, those that attend to digits, and which keys are digits (B, K); None if both
        get the same queries. At most one part of a model has this."""
        return None

    def scores(
        self,
        layer: int,
        scores_BHQK: torch.Tensor,
        query_BHQD: torch.Tensor,
        key_BHKD: torch.Tensor,
        mask_BHQK: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """Changes the scores of a layer, which include the mask, in a way that depends on queries. `scale` is the
        factor on the products of queries and keys."""
        return scores_BHQK

    def weights(self, layer: int, scores_BHQK: torch.Tensor) -> torch.Tensor:
        """The weights of keys, instead of those of a softmax, in the last heads of a layer (`own_heads`). Their scores
        are without the mask; which keys they may see, `Step.visible_BHQK` says."""
        raise NotImplementedError

    def found(
        self,
        layer: int,
        out_BQHD: torch.Tensor,
        query_BHQD: torch.Tensor,
        key_BGKD: torch.Tensor,
        value_BGKD: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        """Changes the output of a layer's heads. The queries are those that attend to digits, and `scale` is the factor
        on their products with keys. There are G key-value heads. In a tree, B are the rows of its paths."""
        return out_BQHD

    def loss(self) -> torch.Tensor | None:
        """An auxiliary loss, after the last layer of a training pass."""
        return None


class Part(nn.Module):
    """An idea about positions or attention, as a module of a model. Its weights start so that they change nothing, or
    nearly nothing."""

    pairs: ClassVar[bool] = False
    """Whether the part changes the mask, or needs `Step.visible_BHQK`. Attention then needs tables over pairs of
    tokens."""
    distances: ClassVar[bool] = False
    """Whether the part needs `Step.positions`."""
    beyond_scores: ClassVar[bool] = False
    """Whether the part changes more than the mask of attention, which only the lab's attention computes."""
    in_pass: ClassVar[bool] = False
    """Whether the position ids depend on weights, so that they must be computed anew in each forward pass."""
    biases: ClassVar[bool] = False
    """Whether the weights are added to attention scores, and so learn at the rate training.bias_learning_rate."""

    def __init__(self, config: PartConfig) -> None:
        super().__init__()
        self.config: Any = config

    def change(self, config: PartConfig) -> None:
        """Takes other values of the keys that may change after training."""
        self.config = config

    def attach(self, model: Any) -> None:
        """Changes the model once, when it is built."""

    def reset(self) -> None:
        """Gives the weights their first values."""

    def read(self, words: Words, reverse: str) -> None:
        """Learns the vocabulary.

        Args:
            words: the vocabulary.
            reverse: which numbers are written lowest digit first: "total" for all, "answer", or "none".

        Raises ModelError if the part cannot work with these tokens.
        """

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """What the part must know about the tokens of a forward pass; see `Inputs`."""
        return {}

    def position_ids(self, rows: Rows) -> torch.Tensor | None:
        """The position ids of the tokens of a forward pass, (B, Q); None if the part does not decide them. In training,
        they may be drawn with `rows.generator`."""
        return None

    def positions(self, ids_BQ: torch.Tensor, ids_BK: torch.Tensor) -> Positions | None:
        """How far apart tokens are by the ids of `position_ids`; None if it is the difference of their ids."""
        return None

    @property
    def most_digits(self) -> int | None:
        """The largest number of digits of an answer whose places get different ids; None for no limit."""
        return None

    def shareable(self, words: Sequence[str], agreed: int) -> int:
        """How many of the first `agreed` tokens of a row can be shared with another row that has the same ones."""
        return agreed

    def embedded(self, hidden_BQD: torch.Tensor, inputs: Inputs, ids_BQ: torch.Tensor) -> torch.Tensor:
        """Changes the embeddings. `ids_BQ`: the position ids; 1 row may stand for all."""
        return hidden_BQD

    def drawn(self, inputs: dict[str, torch.Tensor], index: int) -> dict[str, torch.Tensor]:
        """The inputs of a training batch with what is drawn for it; `index` is that of its first problem."""
        return inputs

    def act(self, inputs: Inputs, step: Step) -> Act | None:
        """What the part does in a forward pass; None if it does nothing in this one."""
        return None


def layers_of(model: Any, key: str, given: tuple[int, int] | None) -> range:
    """The layers of the config's key, all if not given. Raises ModelError if the model has fewer layers."""
    count = model.num_hidden_layers
    first, last = given or (0, count - 1)
    if last >= count:
        raise ModelError(f"{key}={[first, last]}: there is no layer {last}; the model has {count}, counted from 0")
    return range(first, last + 1)
