"""The smallest transformer that adds two 10-digit integers.

    python -m lab.adder verify submission.py [--seed N] [--seconds N] [--plain-loop]

`verify` tries a submission, one Python file, on the challenge's problems and validation layers. It exits with 0 when
the submission qualifies, 1 when it does not, 2 when there is nothing to try. The file is untrusted code: it runs
confined, in processes of its own.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import exit_cleanly

if TYPE_CHECKING:
    from lab.benchmarks.smallest_adder.verify import Verification


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lab.adder", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    verifying = commands.add_parser("verify", help="does a submission qualify, and why not")
    verifying.add_argument("submission", type=Path)
    verifying.add_argument("--seed", type=int, help="of the 10,000 random pairs; drawn when not given (2025 is public)")
    verifying.add_argument("--seconds", type=int, default=600, help="that each of its processes may take (600)")
    verifying.add_argument(
        "--plain-loop", action="store_true", help="every problem token by token, however long it takes"
    )
    verifying.set_defaults(run=verify)
    options = parser.parse_args(argv)
    options.run(options)


def verify(options: argparse.Namespace) -> None:
    from lab.benchmarks.smallest_adder.contract import read_submission

    source = read_submission(options.submission)
    from lab.benchmarks.smallest_adder.sandbox import Limits
    from lab.benchmarks.smallest_adder.verify import verify as verify_source

    verification = verify_source(
        source, options.seed, limits=Limits(seconds=options.seconds), plain_loop=options.plain_loop
    )
    show(verification)
    sys.exit(0 if verification.qualified else 1)


def show(verification: "Verification") -> None:
    words = {True: "passed", False: "FAILED", None: "-"}
    for verdict in verification.verdicts:
        print(f"{words[verdict.passed]:7} {verdict.layer:20} {verdict.reason}")
    print()
    counts = verification.counts
    if counts:
        print(f"parameters   {counts.parameters:,} by the challenge's rule ({counts.bits:,} bits)")
        print(
            f"             {counts.trainable:,} trainable; {counts.buffers_free:,} with buffers free, as papers count"
        )
        print(f"             {counts.by_data_ptr:,} by the public verifier; {counts.literals:,} numbers in the source")
    print(f"accuracy     {verification.right:,} of {verification.problems:,} (seed {verification.seed})")
    if verification.additions_per_second:
        print(f"speed        {verification.additions_per_second:,.0f} additions/s")
    print("qualified" if verification.qualified else "not qualified")


if __name__ == "__main__":
    main()
