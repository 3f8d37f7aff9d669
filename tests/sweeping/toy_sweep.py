"""`lab.sweep` over `toy_pretrain.py`, as a process that can be killed."""

from lab.config.pretraining import PretrainConfig
from lab.config.sweeping import Command
from lab.sweep import main
from lab.sweeping import cells

if __name__ == "__main__":
    cells.COMMANDS = {"pretrain": Command(PretrainConfig, ("toy_pretrain",))}
    main()
