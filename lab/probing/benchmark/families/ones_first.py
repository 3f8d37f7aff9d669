"""Adders that write the ones first. The token at q_k is s_{k-1}, which with a_{k-1} and b_{k-1} determines the carry.

    heads       copy a_k, b_k, a_{k-1}, b_{k-1}; a decoy also attends to a_k, but nothing reads what it writes
    an MLP      x = a_{k-1} + b_{k-1} - s_{k-1}, which is 0 or -1 without a carry and 9 or 10 with one
                carry = 0 up to x = 0, 1 from x = 1 on
    a later MLP y = a_k + b_k + carry;  digit = y up to 9, y - 10 from 10 on
    logits      2 d digit - d^2, largest for the nearest d; <end> if the head of a_k finds "+"

`Design` lists what differs between the adders. A "sharp" switch is flat at the values that it tells apart and turns
halfway between them, so that no gradient passes it: attribution misses the heads before it. With three operands,
a + b' + b'', adding b' and b'' gives no carries, so that a carry of the sum is 0 or 1.

Subtractors compute a - d - 1: the borrow is found from d + s - a in the column below, and the digit is a - d - borrow,
or 10 more. For the lab this is the addition a + b with b = 99...9 - d, which has the same digits, and in which the
carry is 1 minus the borrow. So every instrument works unchanged (`FieldSums`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product

from lab.probing.benchmark.known import FieldSums, Known, KnownAdder
from lab.probing.benchmark.wiring import Wiring
from lab.probing.components import SITES, Component, Site

NAMES = ("a", "b", "c")
"""Names of the operands; three of them stand as a + b' + b''."""


@dataclass(frozen=True)
class Design:
    """What differs between these adders; see `Wiring` for level, lean and noise."""

    layers: int = 2
    digits_in: int = 0
    """The layer whose heads bring the digits."""
    carry_in: tuple[int, ...] = (0,)
    """The layers whose MLPs find the carry; if there are several, they write equal parts of it."""
    sum_in: int = 1
    """The layer whose MLP adds."""
    sharp: bool = False
    operands: int = 2
    borrow: bool = False
    """Whether the model computes a - d - 1, with 9 minus the digits of b as the digits of d (`FieldSums`)."""
    backup: bool = False
    """Whether a second head also brings a_{k-1}. A sharp switch reads the mean of both heads, so that either of them
    suffices."""
    decoy_carry_in: int | None = None
    """A layer whose MLP writes a second copy of the carry, the idle carry, along a direction of its own."""
    bump: bool = False
    """Whether the MLP that adds reads the idle carry, with neurons whose output is 0 at 0 and at 1, but not in between.
    So the idle carry does not matter for any sum; but it seems to matter to an instrument that uses gradients or mean
    ablation. Without a bump, nothing reads the idle carry."""
    decoys: int = 1
    """Number of heads that attend to a_k and write along directions that nothing reads."""
    level: float = 1
    lean: float = 0
    noise: float = 0

    @property
    def operand_names(self) -> tuple[str, ...]:
        return NAMES[: self.operands]

    @property
    def below(self) -> dict[str, float]:
        """The weights with which the carry's MLP reads the digits of column k - 1, by the head that brings each."""
        shares = {f"{name} below": 1.0 for name in self.operand_names}
        return {**shares, "a below": 0.5, "a backup": 0.5} if self.backup else shares

    @property
    def heads(self) -> tuple[str, ...]:
        return (*self.operand_names, *self.below, *(f"decoy {number}" for number in range(self.decoys)))


def wire(design: Design, seed: int) -> Wiring:
    """The weights of a design."""
    carries = [f"carry {layer}" for layer in design.carry_in]
    idle = ["idle carry"] if design.decoy_carry_in is not None else []
    names = [*design.heads, "end", *carries, *idle, "digit"]
    made = Wiring(names, design.heads, design.layers, seed, level=design.level, lean=design.lean, noise=design.noise)
    writer = writer_of(design)
    for head in design.heads:
        number, places = _looks(head)
        moves = {"value": head, "plus": "end"} if head == "a" else {"value": head}
        made.look_back(design.digits_in, head, writer.back(number, places), moves, writer)
    for layer, name in zip(design.carry_in, carries, strict=True):
        _find_carry(made, design, layer, name)
    if design.decoy_carry_in is not None:
        _find_carry(made, design, design.decoy_carry_in, "idle carry")
    _add_up(made, design, carries)
    made.plus_value = 10.0 if design.borrow else 0.0  # "+" reads as 10, so the ones start with a borrow
    return made


def writer_of(design: Design) -> FieldSums:
    """How the sums of a design are written."""
    return FieldSums(operands=design.operands, complement=design.borrow)


def adder(name: str, design: Design, seed: int) -> KnownAdder:
    """The adder of a design."""
    made = wire(design, seed)
    return KnownAdder(made.subject(name, writer_of(design), "digit", "end"), known(design, made))


def known(design: Design, made: Wiring) -> Known:
    """The circuit of a design."""

    def at(head: str) -> tuple[int, int]:
        return design.digits_in, made.head[head]

    def component(head: str) -> Component:
        return Component("head", *at(head))

    carry_mlps = [Component("mlp", layer) for layer in design.carry_in]
    sum_mlp = Component("mlp", design.sum_in)
    edges = {(str(component(head)), str(mlp)) for head in design.below for mlp in carry_mlps}
    edges |= {(str(mlp), str(sum_mlp)) for mlp in carry_mlps} | {(str(sum_mlp), "logits")}
    carry_D = made.writes({f"carry {layer}": 1 for layer in design.carry_in})
    layers = range(design.layers)
    used = {at(head) for head in design.heads}
    return Known(
        carry_D=carry_D / carry_D.norm(),
        digit_D=made.at["digit"] / made.at["digit"].norm(),
        nodes=frozenset({*map(component, design.below), *carry_mlps, sum_mlp}),
        edges=frozenset(edges),
        carry_sites=tuple(_between(max(design.carry_in), design.sum_in)),
        digit_sites=tuple((layer, "post") for layer in layers if layer >= design.sum_in),
        looks_at={at(head): (NAMES[_looks(head)[0]], -_looks(head)[1]) for head in design.heads if _looks(head)[0] < 2},
        carry_heads=tuple(at(head) for head in design.below),
        digit_heads=tuple(at(head) for head in design.operand_names),
        decoy=at("decoy 0"),
        idle_heads=tuple(
            (layer, head) for layer in layers for head in range(len(design.heads)) if (layer, head) not in used
        ),
        directions=made.at,
    )


def _looks(head: str) -> tuple[int, int]:
    """The operand to which a head attends, and how many columns below k."""
    name, _, kind = head.partition(" ")
    return (0, 0) if name == "decoy" else (NAMES.index(name), int(bool(kind)))


def _between(found: int, used: int) -> list[tuple[int, Site]]:
    return [(found, "post"), *product(range(found + 1, used), SITES), (used, "pre"), (used, "mid")]


def _find_carry(made: Wiring, design: Design, layer: int, name: str) -> None:
    sign = -1 if design.borrow else 1
    below = {head: (sign if head.startswith("a") else 1) * share for head, share in design.below.items()}
    low, high = (4.0, 5.0) if design.sharp or design.backup else (0.0, 1.0)
    made.step(layer, {**below, "value": -sign}, low, high, {name: 1})


def _add_up(made: Wiring, design: Design, carries: list[str]) -> None:
    sign = -1 if design.borrow else 1
    total = {name: 1.0 if name == "a" else sign for name in design.operand_names}
    total |= {name: sign / len(carries) for name in carries}
    total |= {"one": 10.0} if design.borrow else {}
    low, high = (9.25, 9.75) if design.sharp else (9.0, 10.0)
    made.neuron(design.sum_in, total, {"digit": 1})
    made.step(design.sum_in, total, low, high, {"digit": -10})
    if design.bump:
        made.neuron(design.sum_in, {"one": 1}, {"digit": _BUMP})
        for sign in (1, -1):
            made.neuron(design.sum_in, {"idle carry": sign, "one": -sign / 2}, {"digit": -2 * _BUMP})


_BUMP = 3.0
"""How much a bump adds to the digit if the idle carry is halfway between 0 and 1."""


DESIGNS = {
    "ones first": Design(),
    "ones first, sharp": Design(sharp=True),
    "ones first, backup head": Design(backup=True),
    "ones first, four decoys": Design(decoys=4),
    "ones first, idle carry beside": Design(decoy_carry_in=0),
    "ones first, idle carry after": Design(layers=3, decoy_carry_in=1, sum_in=2),
    "ones first, bump beside": Design(decoy_carry_in=0, bump=True),
    "ones first, bump after": Design(layers=3, decoy_carry_in=1, sum_in=2, bump=True),
    "ones first, three layers": Design(layers=3, sum_in=2),
    "ones first, late": Design(layers=3, digits_in=1, carry_in=(1,), sum_in=2),
    "ones first, carry in two parts": Design(layers=3, carry_in=(0, 1), sum_in=2),
    "ones first, superposed": Design(sharp=True, noise=0.03),
    "ones first, leaning": Design(sharp=True, lean=0.1),
    "ones first, four layers": Design(layers=4, digits_in=1, carry_in=(2,), sum_in=3, sharp=True),
    "borrow": Design(borrow=True),
    "borrow, sharp": Design(borrow=True, sharp=True),
    "borrow, three layers": Design(borrow=True, layers=3, sum_in=2),
    "three operands": Design(operands=3),
    "three operands, superposed": Design(operands=3, sharp=True, noise=0.03),
}
ADDERS: dict[str, Callable[[int], KnownAdder]] = {
    name: partial(adder, name, design) for name, design in DESIGNS.items()
}
