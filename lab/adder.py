"""The smallest transformer that adds two 10-digit integers.

    lab adder train CONFIG [key.sub=value ...]
    lab adder verify SUBMISSION [seed=N] [seconds=600] [plain_loop=true] [unconfined=true]
    lab adder leaderboard [FOLDER ...] [out=leaderboard] [seconds=600]

`train` trains a small adder, or a group of them of which the best is kept, and writes it as a submission
(<output>/<name>/submission.py). If a run is killed, resume=true continues it, and it ends with the same result.

`verify` tries a submission, one Python file, on the challenge's problems and validation layers. It exits with status 0
if the submission qualifies, 1 if it does not, and 2 if there is nothing to try. The file is untrusted code: it runs
confined in a process of its own, which records the model as a graph; the graph is judged and scored outside.

`leaderboard` tries every submission below the given folders that has no verdict yet, ranks all of them, and writes
leaderboard.md and leaderboard.html.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from lab.command import entry_point, read_config, read_options
from lab.config.schema import Section
from lab.errors import ConfigError
from lab.runs import Run

if TYPE_CHECKING:
    from lab.smallest_adder.verdict import Verification


class VerifyOptions(Section):
    """How a submission is tried."""

    seed: int | None = None
    """Seed of the 10,000 random pairs; if not given, it is drawn. The challenge's public seed is 2025."""
    seconds: int = Field(default=600, ge=1)
    """Time limit of the trial, in seconds."""
    plain_loop: bool = False
    """Generate every answer token by token instead of checking drafts, however long it takes."""
    unconfined: bool = False
    """Run the submission even if the system cannot confine it. Use this only if you trust the file."""


class LeaderboardOptions(Section):
    """How submissions are ranked."""

    out: Path = Path("leaderboard")
    """The folder that the leaderboard is written to."""
    seconds: int = Field(default=600, ge=1)
    """Time limit of each trial, in seconds."""


@entry_point
def main(arguments: list[str]) -> None:
    commands = {"train": train, "verify": verify, "leaderboard": leaderboard}
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, end="")
    elif arguments[0] not in commands:
        raise ConfigError(f"lab adder {arguments[0]}: should be one of {', '.join(commands)}")
    else:
        commands[arguments[0]](arguments[1:])


def train(arguments: Sequence[str]) -> None:
    """Trains the adder of a config, and writes it as a submission."""
    from lab.smallest_adder.config import AdderConfig

    config = read_config(AdderConfig, arguments, "lab adder train", __doc__ or "")
    config.check_run()
    from lab.smallest_adder.training import train_submission

    share, file = train_submission(config)
    print(f"{share.value:.2%} of {share.n:,} right (95 %: {share.low:.2%} to {share.high:.2%})")
    print(f"verify it: lab adder verify {file}")


def verify(arguments: Sequence[str]) -> None:
    """Tries one submission and prints the verdicts. Exits with status 0 if it qualifies, and with 1 if not."""
    from lab.smallest_adder.contract import read_submission

    files, options = read_options(VerifyOptions, arguments, "lab adder verify", __doc__ or "", "SUBMISSION")
    if len(files) != 1:
        raise ConfigError("lab adder verify: give one submission, a Python file")
    source = read_submission(Path(files[0]))
    from lab.smallest_adder.trace.child import Limits
    from lab.smallest_adder.verify import verify as verify_source

    limits = Limits(seconds=options.seconds, confined=not options.unconfined)
    verification = verify_source(source, options.seed, limits=limits, plain_loop=options.plain_loop)
    show(verification)
    sys.exit(0 if verification.qualified else 1)


def leaderboard(arguments: Sequence[str]) -> None:
    """Ranks the submissions in the given folders, trying those that have no verdict yet."""
    from lab.drawing.terminal import show as show_tables
    from lab.errors import LabError
    from lab.smallest_adder.leaderboard import board, write
    from lab.smallest_adder.stored_verdicts import submissions, verdict_of
    from lab.smallest_adder.trace.child import Limits

    words, options = read_options(LeaderboardOptions, arguments, "lab adder leaderboard", __doc__ or "", "[FOLDER ...]")
    Run.check_writable(options.out)
    verdicts = {}
    for name, path in submissions([Path(word) for word in words] or [Path("checkpoints")]):
        print(f"{name!a}", flush=True)
        try:
            verdict = verdict_of(path, Limits(seconds=options.seconds))
            board({name: verdict})  # raises if a stored verdict is damaged
            verdicts[name] = verdict
        except LabError:
            raise
        except Exception as error:
            # one file never stops the others
            print(f"error: {name!a}: no verdict: {type(error).__name__}: {error!a}", file=sys.stderr)
    show_tables([write(verdicts, options.out)])
    qualified = {name: verdict for name, verdict in verdicts.items() if verdict["qualified"]}
    size, smallest = min([(v["counts"]["parameters"], ascii(name)) for name, v in qualified.items()], default=(0, ""))
    best = f"; the smallest has {size:,} parameters ({smallest})" if qualified else ""
    print(f"{len(qualified)} of {len(verdicts)} submissions qualify{best}")
    print(f"written: {options.out / 'leaderboard.md'}, {options.out / 'leaderboard.html'}")


def show(verification: "Verification") -> None:
    """Prints the verdicts, the size, the accuracy and the confinement of a trial."""
    from lab.smallest_adder.trace.confinement import lacks
    from lab.smallest_adder.verdict import PROVES

    words = {True: "passed", False: "FAILED", None: "-"}
    for verdict in verification.verdicts:
        print(f"{words[verdict.passed]:7} {verdict.layer:20} {verdict.reason}")
    print()
    counts = verification.counts
    if counts:
        print(f"parameters   {counts.parameters:,} by the challenge's rule ({counts.bits:,} bits)")
        print(f"literals     {counts.literals:,} more numbers in the code, which the rule does not count")
        print(
            f"             {counts.trainable:,} trainable; {counts.buffers_free:,} with buffers free, as papers count;"
            f" {counts.by_data_ptr:,} by the public verifier"
        )
    if verification.content is not None:
        looks = "depends on tokens" if verification.content > 1e-6 else "by position alone: a fixed causal convolution"
        print(f"attention    {looks} (a weight changes by up to {verification.content:.4f} between problems)")
    print(f"accuracy     {verification.right:,} of {verification.problems:,} (seed {verification.seed})")
    if verification.additions_per_second:
        print(f"speed        {verification.additions_per_second:,.0f} additions/s")
    harms = "".join(f"; it could {harm}" for harm in lacks(verification.confinement))
    print(f"confinement  {', '.join(verification.confinement)}{harms}")
    print(f"\n{PROVES}")
    print("qualified" if verification.qualified else "not qualified")


if __name__ == "__main__":
    main()
