"""What is looked at before a submission works out anything: its text, its exports."""

from lab.smallest_adder import source
from lab.smallest_adder.contract import LARGEST_VOCABULARY, LONGEST_OUTPUT
from lab.smallest_adder.counting import tensors_of
from lab.smallest_adder.trial import Objection, Trial, Unusable


def text(trial: Trial) -> str:
    """Stops tools of deception: reaching into Python or torch, replacing their parts, importing in encode or decode.

    An honest file writes a model down with torch and math; what it trains with belongs under `if __name__ == ...`.
    """
    found = source.objections(trial.text)
    if found:
        raise Objection("; ".join(found[:3]) + ("; ..." if len(found) > 3 else ""))
    return "nothing forbidden in the source"


def interface(trial: Trial) -> str:
    """Stops what is no submission: exports that are missing or too large, no module.

    The challenge's own bounds. A module with metadata beside it is a module too.
    """
    exports = trial.model.exports
    for name, able in zip(("build_model", "encode", "decode"), exports["callable"], strict=True):
        if not able:
            raise Unusable(f"{name} is not a function")
    largest = (("VOCAB_SIZE", LARGEST_VOCABULARY), ("MAX_OUTPUT_LEN", LONGEST_OUTPUT))
    for (name, most), size in zip(largest, exports["sizes"], strict=True):
        if type(size) is not int or not 1 <= size <= most:
            raise Unusable(f"{name} is {size if type(size) is int else 'not an int'}; an int from 1 to {most}")
    trial.vocabulary, trial.length = exports["sizes"]
    trial.tensors = tensors_of(trial.model.ask("build")["tensors"])
    return f"VOCAB_SIZE {trial.vocabulary}, MAX_OUTPUT_LEN {trial.length}, a torch.nn.Module"
