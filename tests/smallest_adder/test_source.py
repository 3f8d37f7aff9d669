"""What the text of a submission may not contain."""

import pytest

from lab.smallest_adder.source import objections


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import ctypes", "line 1: imports ctypes"),
        ("from multiprocessing import shared_memory", "imports multiprocessing"),
        ("x = eval('1')", "calls eval"),
        ("import torch\ntorch.Tensor.argmax = None", "line 2: replaces a part of torch"),
        ("import lab.benchmarks", "imports lab"),
        ("import torch\nx = torch.sys.modules", "reaches for .sys"),
        ("import sys\nx = sys.modules", "reaches for .modules"),
        ("from torch import _C", "imports _C"),
        ("import torch\ntorch.library.Library('aten', 'IMPL')", "reaches for .library"),
        ("class P:\n    def __torch_function__(self): pass", "defines __torch_function__"),
        ("import os\nos.write(3, b'x')", "reaches for .write"),
        ("import torch\nx = getattr(torch, 'li' + 'brary')", "a name made at run time"),
        ("find = getattr", "uses getattr without calling it"),
        ("x = __builtins__", "uses __builtins__"),
        ("import math\nx = vars(math)", "calls vars"),
        ("from torch import nn\nsetattr(nn.Module, 'forward', None)", "replaces a part of nn"),
        ("import sys\nx = sys.modules['lab']", "reaches for .modules"),
        ("def encode(a, b):\n    import os", "encode imports"),
        ("def encode(a, b):\n    global x\n    x = a", "encode changes globals"),
        ("def helper(): return open('x')\ndef decode(tokens): return helper()", "decode uses open"),
        ("x = [" + "1," * 10_001 + "]", "10,001 numbers"),
        (f"x = {'a' * 140_000!r}", "140,000 characters"),
    ],
)
def test_it_is_named_with_its_line(source, reason):
    assert any(reason in found for found in objections(source))


@pytest.mark.parametrize(
    "source",
    [
        "import os\nimport sys\nimport torch\ndef train(): torch.save({}, os.path.join(sys.argv[1], 'x'))",
        "class M:\n    def f(self):\n        self.weight = 1\n        return list(self.modules())",
        "import math\ndef encode(a, b): return [int(c) for c in f'{a}{b}']",
        "class M:\n    def f(self, k):\n        return getattr(self, f'layer{k}'), getattr(self, 'bias', None)",
        "if __name__ == '__main__':\n    import subprocess\n    subprocess.run(['true'])",
    ],
)
def test_what_files_usually_have_beside_the_contract_is_allowed(source):
    assert objections(source) == []
