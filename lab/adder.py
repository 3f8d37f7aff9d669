"""The smallest transformer that adds two 10-digit integers.

    python -m lab.adder train config.yaml [key.sub=value ...]
    python -m lab.adder verify submission.py [--seed N] [--seconds N] [--plain-loop] [--unconfined]
    python -m lab.adder leaderboard [FOLDER ...] [--out FOLDER]

`train` trains a small adder, or a group of them of which the best is kept, and writes it as a submission
(<output>/<name>/submission.py). A run that was cut short goes on with resume=true and ends as if nothing had happened.

`verify` tries a submission, one Python file, on the challenge's problems and validation layers. It exits with 0 when
the submission qualifies, 1 when it does not, 2 when there is nothing to try. The file is untrusted code: it runs
confined, in processes of its own.

`leaderboard` does so with every submission below the given folders that has no verdict yet, and writes leaderboard.md
and leaderboard.html.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import exit_cleanly

if TYPE_CHECKING:
    from lab.smallest_adder.verify import Verification


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
    verifying.add_argument(
        "--unconfined", action="store_true", help="run it even where the system cannot confine it: only if you trust it"
    )
    verifying.set_defaults(run=verify)
    listing = commands.add_parser("leaderboard", help="every submission's verdict, in one table")
    listing.add_argument("folders", type=Path, nargs="*", default=[Path("checkpoints")], metavar="FOLDER")
    listing.add_argument("--out", type=Path, default=Path("leaderboard"), help="where it is written (leaderboard)")
    listing.add_argument("--seconds", type=int, default=600, help="that each process of one may take (600)")
    listing.set_defaults(run=leaderboard)
    # its arguments are those of a config: none is an option, so that --help too comes to `read_config`
    training = commands.add_parser(
        "train", help="a small adder, written as a submission", add_help=False, prefix_chars="+"
    )
    training.add_argument("arguments", nargs=argparse.REMAINDER)
    training.set_defaults(run=train)
    options = parser.parse_args(argv)
    options.run(options)


def train(options: argparse.Namespace) -> None:
    from lab.command import read_config
    from lab.smallest_adder.config import AdderConfig

    config = read_config(AdderConfig, options.arguments, "lab adder train", __doc__ or "")
    config.check_run()
    from lab.smallest_adder.training import train_submission

    share, file = train_submission(config)
    print(f"{share.value:.2%} of {share.n:,} right (95 %: {share.low:.2%} to {share.high:.2%})")
    print(f"verify it: python -m lab.adder verify {file}")


def verify(options: argparse.Namespace) -> None:
    from lab.smallest_adder.contract import read_submission

    source = read_submission(options.submission)
    from lab.smallest_adder.sandbox import Limits
    from lab.smallest_adder.verify import verify as verify_source

    limits = Limits(seconds=options.seconds, confined=not options.unconfined)
    verification = verify_source(source, options.seed, limits=limits, plain_loop=options.plain_loop)
    show(verification)
    sys.exit(0 if verification.qualified else 1)


def leaderboard(options: argparse.Namespace) -> None:
    from rich.console import Console

    from lab.errors import LabError
    from lab.smallest_adder.leaderboard import board, write
    from lab.smallest_adder.sandbox import Limits
    from lab.smallest_adder.stored import submissions, verdict_of

    verdicts = {}
    for name, path in submissions(options.folders):
        print(f"{name!a}", flush=True)
        try:
            verdict = verdict_of(path, Limits(seconds=options.seconds))
            board({name: verdict})  # a stored one may hold anything
            verdicts[name] = verdict
        except LabError:
            raise
        except Exception as error:
            # One file never stops the rest.
            print(f"error: {name!a}: no verdict: {type(error).__name__}: {error!a}", file=sys.stderr)
    Console().print(write(verdicts, options.out).terminal())
    print(f"written: {options.out / 'leaderboard.md'}, {options.out / 'leaderboard.html'}")


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
    print(f"confinement  {', '.join(verification.confinement)}{_open(verification.confinement)}")
    print("qualified" if verification.qualified else "not qualified")


def _open(confinement: Sequence[str]) -> str:
    from lab.smallest_adder.confinement import lacks

    return "".join(f"; it could {harm}" for harm in lacks(confinement))


if __name__ == "__main__":
    main()
