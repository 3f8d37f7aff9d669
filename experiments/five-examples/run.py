"""SmolLM2-135M-Instruct on every benchmark: NUPA in three settings, and two kinds of sums through an HTTP endpoint.

    python -m experiments.five-examples.run [key=value ...]

Arguments, such as limit=4 or output=/tmp/runs, go to every run. Every run is resumed, so if the script was killed it
continues where it stopped, and a finished run only draws its tables again. The endpoint is `transformers serve` on
127.0.0.1.
"""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.errors import exit_cleanly
from lab.evaluate import main as evaluate
from lab.models.sources import locate

ROOT = Path(__file__).parents[2]
MODEL = "smollm2-135m-instruct"
PORT = 8765
"""Always the same, because a run must be resumed with the config that it began with."""
LOCAL = ("nupa_smollm2", "nupa_smollm2_5shot", "nupa_smollm2_chat")
SERVED = {"two_integers_smollm2": "two_integers", "carry_free_smollm2": "carry_free"}
SIZES = {"carry_free": ["benchmark.problems_per_length=5", "benchmark.max_tokens=256", "benchmark.language=en"]}


@contextmanager
def served(folder: str) -> Iterator[str]:
    """The root of an endpoint that serves a model until the block ends."""
    command = [Path(sys.executable).with_name("transformers"), "serve", folder, "--host", "127.0.0.1"]
    server = subprocess.Popen(
        [*command, "--port", str(PORT), "--device", "cpu", "--dtype", "float32"],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=5)
                break
            except OSError:
                if server.poll() is not None:
                    raise SystemExit("transformers serve ended; is number-lab[serve] installed?") from None
                time.sleep(0.5)
        yield f"http://127.0.0.1:{PORT}/v1"
    finally:
        server.terminate()
        server.wait()


@exit_cleanly
def main(overrides: list[str]) -> None:
    for name in LOCAL:
        evaluate([str(ROOT / "configs" / f"{name}.yaml"), *overrides, "resume=true"])
    folder = locate(MODEL)
    with served(folder) as root:
        for name, config in SERVED.items():
            engine = [f"engine.base_url={root}", f"engine.model={folder}", "engine.concurrency=2"]
            arguments = [f"name={name}", *engine, *SIZES.get(config, []), *overrides, "resume=true"]
            evaluate([str(ROOT / "configs" / f"{config}.yaml"), *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
