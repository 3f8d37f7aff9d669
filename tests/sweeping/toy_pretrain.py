"""Stands in for `lab.pretrain`: its config and its run directory, and a few steps instead of a training.

After its fourth step it waits as long as there is a file "held" beside the runs; a run that is resumed after that step
does not. If the size is 1.3M, it fails as long as there is a file "broken" there.
"""

import sys
import time

from lab.command import read_config
from lab.config.pretraining import PretrainConfig
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson


@exit_cleanly
def main() -> None:
    config = read_config(PretrainConfig, sys.argv[1:], "toy", "")
    with config.open_run() as run:
        for step in range(len(run.read("metrics")), config.training.max_steps):
            print(f"step {step}", flush=True)
            run.append("metrics", [{"step": step}])
            while step == 3 and (config.output / "held").exists():
                time.sleep(0.02)
        if config.model.size == "1.3M" and (config.output / "broken").exists():
            raise ZeroDivisionError("the slopes are broken")
        right = {"0.2M": 90, "0.4M": 40, "1.3M": 60}[config.model.size] + config.seed
        run.write_json("summary", {"right": wilson(right, 100)._asdict()})


if __name__ == "__main__":
    main()
