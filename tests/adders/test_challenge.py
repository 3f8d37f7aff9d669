"""Python adders: what qualifies by the challenge's rules, what does not, and that nothing they do harms the lab."""

import random
import time

import pytest

from lab.adders.challenge import judge as judging
from lab.adders.challenge.child import Limits
from lab.adders.challenge.judge import judge
from lab.adders.challenge.source import facts, read
from lab.adders.verdict import Verdict
from lab.errors import TaskError

HONEST = '''"""Attention by distance: 10/22 on each digit of this place, 1/22 on each of the place before.

Category: hand-coded
Seeds: 3
"""
import math
import torch
from torch import nn

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        distances = torch.full((40,), -60.0)
        distances[[10, 21]] = math.log(10.0)
        distances[[11, 22]] = 0.0
        self.distances = nn.Parameter(distances)
        self.values = nn.Parameter(torch.tensor([*map(float, range(10)), 0.0, 0.0]))
        self.scale = nn.Parameter(torch.tensor([22.0, 100.0, 95.0, 0.1]))

    def forward(self, ids):
        x = self.values[ids]
        places = torch.arange(ids.shape[1])
        ahead = places[None, :] > places[:, None]
        scores = self.distances[(places[:, None] - places[None, :]).clamp(min=0)].masked_fill(ahead, -math.inf)
        weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)
        whole, hundred, step, tenth = self.scale
        x = whole * (weights @ x[..., None])[..., 0] - x
        x = x - hundred * torch.sigmoid((x - step) * 20)
        logits = torch.cat([-((tenth * x[..., None] - self.values[:10]) ** 2), torch.full((*x.shape, 2), -1e9)], -1)
        return logits


def build_model():
    return Adder()


def encode(a, b):
    return [10, *map(int, reversed(f"{a:010}")), 10, *map(int, reversed(f"{b:010}")), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
'''
PARAMETERS = 56


def changed(*changes: tuple[str, str]) -> str:
    source = HONEST
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


def harmful(name: str) -> str:
    old, new = HARM[name]
    return changed((old, f"{old}\n{new}" if old.startswith("VOCAB") else new))


def verdict(source: str, seconds: float = 60, number: int = 60) -> Verdict:
    return judge(source, number=number, limits=Limits(seconds=seconds))


OBJECT = "return type('Output', (), {'logits': logits, 'past_key_values': None})()"
ALIKE = [
    [],
    [("return logits", "return {'logits': logits}")],
    [("return logits", OBJECT)],
    [("return logits", "return logits, 'attention'")],
    [("return logits", "return logits[:, -1]")],
    [("return Adder()", "return Adder(), {'name': 'x'}")],
    [("x = self.values[ids]", "assert type(ids) is list; ids = torch.tensor([ids]); x = self.values[ids]")],
    [
        ("x = self.values[ids]", "assert ids.ndim == 1; ids = ids[None]; x = self.values[ids]"),
        ("return logits", "return logits[0]"),
    ],
    [("x = self.values[ids]", "assert len(ids) == 1; x = self.values[ids]")],
    [("super().__init__()", "super().__init__(); self.register_buffer('mask', torch.ones(40, 40, dtype=torch.bool))")],
    [("self.scale = nn.Parameter", "self.tied = self.values; self.scale = nn.Parameter")],
    [("nn.Parameter(distances)", "nn.Parameter(distances, requires_grad=False)")],
    [("return Adder()", "return Adder().double()")],
]


@pytest.mark.slow
@pytest.mark.parametrize("changes", ALIKE, ids=range(len(ALIKE)))
def test_an_honest_file_qualifies_in_each_form_that_the_challenge_allows(changes):
    found = verdict(changed(*changes))
    assert (found.objections, found.right, found.parameters) == ([], 70, PARAMETERS)
    assert (found.qualified, found.category, found.seeds, found.form) == (True, "hand-coded", 3, "python")


FOLDER = """import torch
from transformers import {config}, {model}

VOCAB_SIZE = 12
MAX_OUTPUT_LEN = 11


def build_model():
    return {model}({config}(vocab_size=12, {sizes}))


def encode(a, b):
    return [*map(int, f"{{a:010}}"), 10, *map(int, f"{{b:010}}"), 11]


def decode(tokens):
    return sum(token * 10**place for place, token in enumerate(tokens))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        {"config": "GPT2Config", "model": "GPT2LMHeadModel", "sizes": "n_embd=16, n_layer=2, n_head=2, n_positions=40"},
        {"config": "LlamaConfig", "model": "LlamaForCausalLM", "sizes": "hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2"},  # noqa: E501
    ],
)  # fmt: skip
def test_the_models_of_hugging_face_are_judged_as_they_come(names):
    found = verdict(FOLDER.format(**names))  # use_cache=True, an output object
    assert found.objections == []
    assert (found.problems, found.parameters > 1000) == (70, True)


COUNTED = [
    ([("super().__init__()", "super().__init__(); self.register_buffer('more', torch.zeros(100))")], 100),
    (
        [
            (
                "nn.Parameter(distances)",
                "nn.Parameter(distances.repeat(3)[:40]); self.other = nn.Parameter(torch.zeros(7))",
            )
        ],
        7,
    ),
    (
        [("        self.distances =", "        self.view = nn.Parameter(distances[:1]); self.distances =")],
        0,
    ),  # a small view first
    (
        [
            (
                "        x = self.values[ids]",
                "        self.register_buffer('late', torch.zeros(9)); x = self.values[ids]",
            )
        ],
        9,
    ),
    (
        [
            (
                "class Adder(nn.Module):",
                "class Adder(nn.Module):\n    def named_parameters(self, *a, **k): return iter(())",
            )
        ],
        0,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "more"), COUNTED)
def test_parameters_and_buffers_are_counted_by_storage_however_they_are_registered(changes, more):
    assert verdict(changed(*changes)).parameters == PARAMETERS + more


REFUSED = [
    ([("VOCAB_SIZE = 12", "VOCAB_SIZE = 300")], "VOCAB_SIZE is 300; should be an int from 1 to 256"),
    ([("MAX_OUTPUT_LEN = 11", "MAX_OUTPUT_LEN = 31")], "MAX_OUTPUT_LEN is 31"),
    ([("return [10,", "return [0] * 20 + [10,")], "has 43 tokens; should have 1 to 35"),
    ([("return [10,", "return [12,")], "has tokens outside 0 to 11"),
    ([("return [10,", "import random; return [random.randrange(12),")], "differs when it is called again"),
    ([("return [10,", "return (10,"), (', 11]', ', 11)')], "returns no list of ints"),
    ([("weights = torch.softmax(scores.expand(len(ids), -1, -1), -1)", "weights = torch.zeros(1, 1, 1)"),
      ("(weights @ x[..., None])[..., 0]", "x.roll(10, 1)")], "no self-attention"),
    ([("return logits", "return logits * 0 + self.values[:1]")], "does not depend on earlier tokens"),
    ([("ahead = places[None, :] > places[:, None]", "ahead = places[None, :] > places[:, None] + 3")], "not causal"),
    ([("return sum(", "import os; return sum(")], "decode reaches outside itself: import"),
    ([("return sum(", "return globals().get('x') or sum(")], "decode reaches outside itself: globals"),
    ([("def decode(tokens):\n    return sum(", "def helper():\n    global x\n\n\ndef decode(tokens):\n    helper()\n    return sum(")], "reaches outside itself: global"),  # noqa: E501
    ([("return Adder()", "return 3")], "not a torch.nn.Module"),
    ([("return Adder()", "return 1 // 0")], "ZeroDivisionError"),
    ([("return logits", "return 'logits'")], "in which there are no logits"),
    ([("return logits", "return logits.repeat(1, 1, 99)")], "logits a token"),
    ([("import math\n", "import math (\n")], "SyntaxError"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=range(len(REFUSED)))
def test_a_file_that_breaks_a_rule_is_told_which(changes, said):
    found = verdict(changed(*changes))
    assert said in found.objections[0]
    assert not found.qualified


MEMORY = [("return [10,", "SUMS[0] = a + b; return [10,"), ("VOCAB_SIZE = 12", "SUMS = [0]; VOCAB_SIZE = 12")]
WRONG = [
    # state of encode does not reach decode
    [*MEMORY, ("return sum(", "return SUMS[0] or sum("), ("10**place", "11**place")],
    # an object that equals every sum is no int
    [("return sum(", "return type('Any', (int,), {'__eq__': lambda a, b: True})("), ("in enumerate(tokens))", "in tokens)"), ("token * 10**place for place, token", "0 for token")],  # noqa: E501
    # right at the full length alone: the growing loop never gets there
    [("return logits", "return logits if ids.shape[1] == 33 else -logits")],
    # a batch that is right while each alone is wrong
    [("return logits", "return logits if len(ids) > 1 else logits.roll(1, -1)")],
    [("torch.cat([-(", "torch.full((*x.shape, 1), math.nan) + torch.cat([-(")],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("changes", WRONG, ids=range(len(WRONG)))
def test_what_is_right_only_outside_the_loop_is_wrong(changes):
    found = verdict(changed(*changes))
    assert not found.qualified
    assert found.right <= 5


HARM = {
    "dies of a signal": ("return logits", "torch.div(torch.tensor([-2**63]), torch.tensor([-1]), rounding_mode='trunc')"),  # noqa: E501
    "writes to memory": ("return logits", "import ctypes; ctypes.string_at(0)"),
    "exits": ("VOCAB_SIZE = 12", "import os; os._exit(0)"),
    "raises SystemExit": ("VOCAB_SIZE = 12", "raise SystemExit"),
    "never returns": ("return [10,", "while True: pass\n    return [10,"),
    "sleeps": ("return Adder()", "import time; time.sleep(1000)"),
    "hangs in C": ("return logits", "sum(range(10**13))"),
    "forks": ("VOCAB_SIZE = 12", "import os\nwhile True: os.fork()"),
    "starts threads": ("VOCAB_SIZE = 12", "import threading\nwhile True: threading.Thread(target=print).start()"),
    "allocates": ("return [10,", "x = [bytes(1 << 28) for _ in range(100)]; return [10,"),
    "prints a gigabyte": ("VOCAB_SIZE = 12", "for _ in range(1024): print('x' * (1 << 20))\n1 // 0"),
    "writes into the channel": ("VOCAB_SIZE = 12", "import os\nfor fd in range(3, 30):\n    try: os.write(fd, b'x' * 10000)\n    except OSError: pass"),  # noqa: E501
    "forges an answer": ("VOCAB_SIZE = 12", "import os\nfor fd in range(3, 30):\n    try: os.write(fd, b'\\0\\0\\0\\x0d{\"value\": [1]}')\n    except OSError: pass"),  # noqa: E501
    "sends half an answer": ("VOCAB_SIZE = 12", "import os, time\nfor fd in range(3, 30):\n    try: os.write(fd, b'\\0\\0\\x0f\\0{')\n    except OSError: pass\ntime.sleep(1000)"),  # noqa: E501
    "answers with megabytes": ("return [10,", "return [10**4000] * 10**6 + [10,"),
    "removes a file": ("VOCAB_SIZE = 12", "import os; os.remove(__import__('torch').__file__)"),
    "writes a file": ("VOCAB_SIZE = 12", "open('/tmp/escaped', 'w')"),
    "connects": ("VOCAB_SIZE = 12", "import socket; socket.socket()"),
    "kills": ("VOCAB_SIZE = 12", "import os; os.kill(os.getppid(), 9)"),
    "nests": ("VOCAB_SIZE = 12", "VOCAB_SIZE = " + "(" * 5000 + "12" + ")" * 5000),
    "has an endless error": ("VOCAB_SIZE = 12", "class E(Exception):\n    def __str__(self): return 'x' * (1 << 33)\nraise E()"),  # noqa: E501
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HARM)
def test_whatever_a_file_does_there_is_a_verdict_in_time(name):
    judging.ask("decode", HONEST, {"outputs": []}, Limits(), 60)  # torch is imported once, before the clock
    began = time.monotonic()
    found = verdict(harmful(name), seconds=8, number=20)
    assert time.monotonic() - began < 8 + 5
    assert found.objections
    assert not found.qualified


@pytest.mark.slow
def test_the_problems_that_count_cannot_be_told_from_those_that_were_practised(monkeypatch):
    trials = [judging.Trial(HONEST, Limits()) for _ in range(2)]
    state = random.getstate()
    random.seed(1)
    practised = [pair for trial in trials for pair in trial.practice]
    random.setstate(state)
    assert len(set(practised)) == len(practised)
    scored = set(judging.problems(1, 10_000))
    assert not scored & set(practised)


def test_what_a_file_says_of_itself_is_read_without_running_it():
    assert facts(HONEST) == {"category": "hand-coded", "seeds": 3, "reaches": ""}
    assert facts("CATEGORY = 'trained'")["category"] == "trained"
    assert facts("CATEGORY = open('x')")["category"] == "unstated"
    assert facts('"""Seeds: ' + "9" * 5000 + '"""')["seeds"] is None


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "there is no such file"),
        ("VOCAB_SIZE = 12\ndef encode(a, b): return []\n", "lacks build_model, decode, MAX_OUTPUT_LEN"),
        ("def build_model(): pass\ndef add(model, a, b): pass\n", "an AdderBoard file"),
        ("x = 1\n" * 200_000, "a Python adder has at most"),
    ],
)
def test_a_file_without_the_exports_is_no_adder(source, said, tmp_path):
    if source:
        (tmp_path / "x.py").write_text(source)
    with pytest.raises(TaskError, match=said):
        read(tmp_path / "x.py")


@pytest.mark.parametrize(
    "line", ["from torch import nn, encode, decode", "encode, decode = f, g", "encode = decode = f"]
)
def test_exports_may_be_assigned_or_imported(line, tmp_path):
    (tmp_path / "x.py").write_text(f"{line}\ndef build_model(): pass\nVOCAB_SIZE = MAX_OUTPUT_LEN = 10\n")
    assert read(tmp_path / "x.py")
