"""What `train` writes is the model that was trained, in a file that stands alone."""

import ast

import pytest
import torch

from lab.smallest_adder import rows as adder_rows
from lab.smallest_adder.config import AdderModelConfig, GptAdderConfig, ReducedAdderConfig, TinyAdderConfig
from lab.smallest_adder.contract import EXPORTS
from lab.smallest_adder.models import build
from lab.smallest_adder.training import submission

MODELS: list[AdderModelConfig] = [
    GptAdderConfig(),
    TinyAdderConfig(),
    TinyAdderConfig(width=2, heads=1, inner=3, period=(8, 20), tied=True, gains="none"),
    ReducedAdderConfig(),
    ReducedAdderConfig(width=1, embedding="ramp", head="nearest"),
    ReducedAdderConfig(embedding="table", attention="content", output="matrix", gates="free", head="free"),
]


def loaded(source: str) -> dict:
    names: dict = {"__name__": "submission"}
    exec(compile(source, "submission.py", "exec"), names)
    return names


@pytest.mark.parametrize("config", MODELS, ids=lambda config: f"{config.kind}-{config.width}")
def test_a_submission_is_the_model_bit_for_bit_and_imports_torch_alone(config):
    torch.manual_seed(0)
    model = build(config)
    source = submission(model, config.model_dump(exclude={"kind"}), "An adder.")
    imported = {
        alias.name.partition(".")[0] if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported == {"math", "torch"}
    names = loaded(source)
    assert set(EXPORTS) <= names.keys()
    assert (names["CATEGORY"], names["VOCAB_SIZE"], names["MAX_OUTPUT_LEN"]) == ("trained", 10, 11)
    assert names["__doc__"].startswith("An adder.")
    theirs = names["build_model"]()
    for (name, ours), (same, read) in zip(model.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == same
        assert torch.equal(ours, read)
    ids_BT = torch.from_numpy(adder_rows.batch("valid", 0, 0, 3)[0])
    assert torch.equal(model(ids_BT), theirs(ids_BT))
    assert names["encode"](12, 345) == adder_rows.encode(12, 345)
    assert names["decode"]([1, 2, 3]) == 321
