"""Makes the notation that the config of a model from scratch asks for."""

from lab.config.pretraining import PretrainConfig
from lab.config.schema import chosen
from lab.text.notation import Notation, ScratchNotation
from lab.text.rule_notation import RuleNotation
from lab.text.running_totals import RunningTotals


def notation_of(config: PretrainConfig) -> ScratchNotation:
    """How the model of a config reads and writes problems. Raises RuleError and TaskError as the notations do."""
    data = config.data
    if data.style == "rule_following":
        return RuleNotation(data.rules, config.format, data.cells)
    if data.style == "running_totals":
        return RunningTotals(chosen(data.tasks))
    return Notation(config.tokenizer, config.format, chosen(data.tasks))
