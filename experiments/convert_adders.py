"""Turns the adders of earlier versions of the lab into declared adders, number by number.

    python -m experiments.convert_adders OLD NEW.json

OLD is a run directory of `lab adder train` from before adders were data (config.yaml and model/model.safetensors), or
the submission.py that such a run wrote. The declared adder computes the same logits, up to the rounding of sums.
"""

import ast
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.adders.files import write
from lab.adders.spec import check
from lab.errors import ConfigError, ModelError, exit_cleanly

Weights = Mapping[str, Any]
TEMPLATES = {"prompt": [0, "a0..9", 0, 0, "b0..9", 0], "answer": ["s0..10"]}


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 2:
        raise ConfigError("usage: python -m experiments.convert_adders OLD NEW.json")
    old, new = map(Path, arguments)
    settings, weights, told = from_submission(old) if old.suffix == ".py" else from_run(old)
    value = declared(settings, weights) | told
    check(value)
    write(value, new)
    print(f"{new}: written; lab adder verify {new}")


def from_submission(path: Path) -> tuple[dict[str, Any], Weights, dict[str, Any]]:
    """The settings, the weights, and what the file says of itself."""
    tree = ast.parse(path.read_text())
    (weights,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WEIGHTS"
    )
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and re.fullmatch("(Gpt|Tiny|Reduced)Adder", ast.unparse(node.func))
    ]
    settings = {word.arg: ast.literal_eval(word.value) for word in calls[0].keywords if word.arg}
    settings["kind"] = ast.unparse(calls[0].func).removesuffix("Adder").lower()
    about = (ast.get_docstring(tree) or "").partition("\n\nSeeds:")[0]
    seeds = re.search(r"Seeds: (\d+)", ast.get_docstring(tree) or "")
    return (
        settings,
        ast.literal_eval(weights),
        {"about": about, "category": "trained", "seeds": int(seeds[1]) if seeds else None},
    )


def from_run(folder: Path) -> tuple[dict[str, Any], Weights, dict[str, Any]]:
    from safetensors.torch import load_file

    try:
        config = yaml.safe_load((folder / "config.yaml").read_text())
        weights = {
            name: weight.float().tolist() for name, weight in load_file(folder / "model" / "model.safetensors").items()
        }
        seeds = config["group"]["seeds"]
    except (OSError, KeyError, TypeError) as error:
        raise ModelError(f"{folder}: not a run of an earlier lab adder train: {error}") from None
    return config["model"], weights, {"category": "trained", "seeds": seeds}


def declared(settings: Mapping[str, Any], weights: Weights) -> dict[str, Any]:
    """The declared adder of one of the three architectures that there were: gpt, tiny and reduced."""
    kinds = {"gpt": gpt, "tiny": tiny, "reduced": reduced}
    numbers, model = kinds[settings["kind"]](settings, weights)
    return {"numbers": numbers, "model": model, **TEMPLATES} | (
        {"vocabulary": 10} if settings["kind"] == "reduced" else {}
    )


def gpt(settings: Mapping[str, Any], w: Weights) -> tuple[dict[str, Any], dict[str, Any]]:
    norms = ("attention_norm", "feed_forward_norm", "final_norm")
    maps = {"query": "query", "key": "key", "value": "value", "output": "output", "up": "up", "down": "down"}
    numbers = {"digits": w["digits_VD"], "positions": w["positions_TD"]} | {
        name: w[f"{own}.weight"] for name, own in maps.items()
    }
    for norm in norms:
        numbers |= {f"{norm}_gain": w[f"{norm}.weight"], f"{norm}_bias": w[f"{norm}.bias"]}
    numbers |= {f"{name}_bias": w[f"{name}.bias"] for name in ("up", "down")}
    first, second, last = ({"kind": "layer", "gain": f"{norm}_gain", "bias": f"{norm}_bias"} for norm in norms)
    attention = {"norm": first, "heads": settings["heads"], "q": "query", "k": "key", "v": "value", "o": "output"}
    ffn = {"norm": second, "act": "gelu", **{name: {"w": name, "b": f"{name}_bias"} for name in ("up", "down")}}
    layers = [{"attention": attention, "ffn": ffn}]
    return numbers, {"embedding": "digits", "positions": "positions", "layers": layers, "norm": last, "head": "digits"}


def tiny(settings: Mapping[str, Any], w: Weights) -> tuple[dict[str, Any], dict[str, Any]]:
    numbers: dict[str, Any] = {"digits": w["digits_VD"]}
    gains = w.get("gains_ND", [])
    numbers |= {f"gain_{3 - len(gains) + index}": gain for index, gain in enumerate(gains)}
    period: Any = settings.get("period", 12)
    if "period" in w:
        numbers["period"], period = w["period"], "period"
    maps = ("query", "key", "value", "output", "gate", "up", "down", "head")
    numbers |= {name: w[f"{name}.weight"] for name in maps if f"{name}.weight" in w}
    norms = [{"kind": "rms"} | ({"gain": f"gain_{index}"} if f"gain_{index}" in numbers else {}) for index in range(3)]
    attention = {"norm": norms[0], "heads": settings["heads"], "q": "query", "k": "key", "v": "value", "o": "output"}
    tied = {"gate": "gate" if "gate" in numbers else "up", "down": "down" if "down" in numbers else "-up.T"}
    ffn = {"norm": norms[1], "act": "silu", "up": "up", **tied}
    layers = [{"attention": attention, "ffn": ffn}]
    head = "head" if "head" in numbers else "digits"
    return numbers, {
        "embedding": "digits",
        "rope": {"period": period},
        "layers": layers,
        "norm": norms[2],
        "head": head,
    }


def reduced(settings: Mapping[str, Any], w: Weights) -> tuple[dict[str, Any], dict[str, Any]]:
    width, numbers = settings["width"], {}

    def table(name: str, own: str) -> str:
        numbers[name] = w[own]
        return name

    embeddings = {
        "table": lambda: table("points", "points_VD"),
        "arc": lambda: {"arc": table("arc", "arc_3")},
        "ramp": lambda: {"ramp": table("step", "step")},
        "unit": lambda: {"ramp": 1},
    }
    points = embeddings[settings["embedding"]]()
    attention: dict[str, Any] = {"scale": 8}
    if settings["attention"] == "content":
        attention |= {"q": f"{table('query', 'query_D2')}.T", "k": f"{table('key', 'key_D2')}.T"}
    else:  # both are the same for all tokens; turned against (1, 0), the two numbers weigh cos and sin of the distance
        attention |= {"q": {"b": [1, 0]}, "k": {"b": table("key", "query_2")}}
    if settings["output"] == "matrix":
        attention["o"] = f"{table('output', 'output_DD')}.T"
    attention["residual"] = table("residual", "residual")
    if settings["gates"] == "free":
        up, down = f"{table('gates', 'gates_DF')}.T", f"{table('down', 'down_FD')}.T"
    else:
        gate = [[1]]
        if width > 1:
            numbers["gate"] = [w["gate_D"]]
            gate = "gate"
        numbers["down"] = [w["down_D"]]
        up, down = {"join": [gate, gate]}, {"transpose": {"join": ["down", "-down"]}}
    ffn = {"act": "relu", "up": {"w": up, "b": table("bias", "bias_F")}, "down": down}
    model = {
        "embedding": points,
        "rope": {"period": settings["period"]},
        "layers": [{"attention": attention, "ffn": ffn}],
    }
    if settings["head"] == "free":
        return numbers, model | {"head": f"{table('head', 'head_DV')}.T"}
    model["norm"] = {"kind": "none", "gain": table("scale", "scale_D")}
    return numbers, model | {"head": {"nearest": points} if settings["head"] == "nearest" else points}


if __name__ == "__main__":
    main(sys.argv[1:])
