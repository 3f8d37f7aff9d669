"""The smallest transformer that adds two 10-digit integers.

    lab adder train CONFIG [key.sub=value ...]
    lab adder verify FILE [seed=N] [seconds=600] [unconfined=true]
    lab adder import FOLDER FILE.json [prompt=[...]] [answer=[...]] [digits=[...]]
    lab adder leaderboard [FOLDER ...] [out=leaderboard] [seconds=600]

An adder is data: a JSON or YAML file with tables of numbers, layers from a closed vocabulary, and templates of the
prompt and the answer. The lab builds, runs and counts it.

`train` trains a small adder, or a group of them of which the best is kept, and writes it as a declared adder
(<output>/<name>/adder.json). If a run is killed, resume=true continues it, and it ends with the same result.

`verify` judges an adder on the challenge's problems, in its growing loop. It exits with status 0 if the adder
qualifies, 1 if it does not, and 2 if there is nothing to judge. FILE may also be Python, with the five exports of the
challenge: it is judged by the challenge's rules, in confined processes, and ranks apart.

`import` declares a model of Hugging Face (a folder of a Llama or a GPT-2).

`leaderboard` judges every adder below the given folders that has no verdict yet, ranks all of them, and writes
leaderboard.md and leaderboard.html.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from lab.command import entry_point, read_config, read_options
from lab.config.schema import Section
from lab.errors import ConfigError, LabError
from lab.runs import Run

if TYPE_CHECKING:
    from lab.adders.verdict import Verdict


class VerifyOptions(Section):
    """How an adder is judged."""

    seed: int | None = Field(default=None, ge=0)
    """Seed of the 10,000 random pairs; if not given, it is drawn. The challenge's public seed is 2025."""
    seconds: int = Field(default=600, ge=1)
    """Time limit, in seconds."""
    unconfined: bool = False
    """Run a Python file even if the system cannot confine it. Use this only if you trust the file."""


class ImportOptions(Section):
    """Templates of an imported model; see lab/adders/spec.py."""

    prompt: list[int | str] | None = None
    """What stands before the answer, such as [a9..0, 10, b9..0, 11]."""
    answer: list[int | str] | None = None
    """The tokens that are generated, such as [s10..0]."""
    digits: list[int] | None = None
    """The ids of the tokens 0 to 9."""


class LeaderboardOptions(Section):
    """How adders are ranked."""

    out: Path = Path("leaderboard")
    """The folder that the leaderboard is written to."""
    seconds: int = Field(default=600, ge=1)
    """Time limit for each adder, in seconds."""


@entry_point
def main(arguments: list[str]) -> None:
    commands = {"train": train, "verify": verify, "import": import_, "leaderboard": leaderboard}
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, end="")
    elif arguments[0] not in commands:
        raise ConfigError(f"lab adder {arguments[0]}: should be one of {', '.join(commands)}")
    else:
        commands[arguments[0]](arguments[1:])


def train(arguments: Sequence[str]) -> None:
    """Trains the adder of a config, and declares it."""
    from lab.adders.config import AdderConfig

    config = read_config(AdderConfig, arguments, "lab adder train", __doc__ or "")
    config.check_run()
    from lab.adders.training import train_adder

    share, file = train_adder(config)
    print(f"{share.value:.2%} of {share.n:,} right (95 %: {share.low:.2%} to {share.high:.2%})")
    print(f"verify it: lab adder verify {file}")


def verify(arguments: Sequence[str]) -> None:
    """Judges one adder and prints the verdict. Exits with status 0 if it qualifies, and with 1 if not."""
    files, options = read_options(VerifyOptions, arguments, "lab adder verify", __doc__ or "", "FILE")
    if len(files) != 1:
        raise ConfigError("lab adder verify: give one adder, a file of JSON, YAML or Python")
    verdict = judged(Path(files[0]), options)
    show(verdict)
    sys.exit(0 if verdict.qualified else 1)


def judged(path: Path, options: VerifyOptions) -> "Verdict":
    """The verdict on a file. Raises TaskError if it is no adder."""
    if path.suffix == ".py":
        from lab.adders.challenge.child import Limits
        from lab.adders.challenge.judge import judge as judge_source
        from lab.adders.challenge.source import read

        return judge_source(
            read(path), options.seed, limits=Limits(seconds=options.seconds, confined=not options.unconfined)
        )
    from lab.adders.spec import load

    adder = load(path)
    from lab.adders.judge import judge

    return judge(adder, options.seed, seconds=options.seconds)


def import_(arguments: Sequence[str]) -> None:
    """Declares a model of Hugging Face."""
    words, options = read_options(ImportOptions, arguments, "lab adder import", __doc__ or "", "FOLDER FILE.json")
    if len(words) != 2 or Path(words[1]).suffix != ".json":
        raise ConfigError("lab adder import: give a folder, and the file to write, FILE.json")
    if Path(words[1]).exists():
        raise ConfigError(f"{words[1]}: exists already; give the name of a new file")
    from lab.adders.files import write
    from lab.adders.importing import from_folder

    write(from_folder(Path(words[0]), **options.model_dump(exclude_none=True)), Path(words[1]))
    print(f"written: {words[1]}; verify it: lab adder verify {words[1]}")


def leaderboard(arguments: Sequence[str]) -> None:
    """Ranks the adders in the given folders, judging those that have no verdict yet."""
    from lab.adders.leaderboard import adders, verdict_of, write
    from lab.drawing.terminal import show as show_tables

    words, options = read_options(LeaderboardOptions, arguments, "lab adder leaderboard", __doc__ or "", "[FOLDER ...]")
    Run.check_writable(options.out)
    verdicts = {}
    for name, path in adders([Path(word) for word in words] or [Path("checkpoints")]):
        print(f"{name!a}", flush=True)
        try:
            verdicts[name] = verdict_of(path, lambda path: judged(path, VerifyOptions(seconds=options.seconds)))
        except Exception as error:  # one file never stops the others
            what = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error!a}"
            print(f"error: {name!a}: no verdict: {what}", file=sys.stderr)
    show_tables(write(verdicts, options.out))
    qualified = {name: verdict for name, verdict in verdicts.items() if verdict.qualified}
    print(f"{len(qualified)} of {len(verdicts)} adders qualify")
    print(f"written: {options.out / 'leaderboard.md'}, {options.out / 'leaderboard.html'}")


def show(verdict: "Verdict") -> None:
    """Prints a verdict."""
    from lab.adders.verdict import DECLARED, FOREIGN, NOT_EXCLUDED
    from lab.numbers.statistics import wilson

    print(FOREIGN if verdict.form == "python" else DECLARED)
    share = wilson(verdict.right, verdict.problems)
    interval = f"{share.value:.2%} (95 %: {share.low:.2%} to {share.high:.2%})"
    print(
        f"accuracy     {verdict.right:,} of {verdict.problems:,} in the growing loop, {interval}; seed {verdict.seed}"
    )
    if verdict.parameters is not None:
        print(f"parameters   {verdict.parameters:,} by the challenge's rule")
    if verdict.numbers is not None:
        print(f"numbers      {verdict.numbers:,} in all, literal ones too")
    if looks := verdict.looks:
        kept = (
            f"{looks.mean_kept:.1%} of {looks.n:,} answers stay with mean weights, {looks.uniform_kept:.1%} with equal"
        )
        depends = "depends on tokens" if looks.kind == "transformer" else "does not depend on tokens"
        print(f"attention    {depends}: {kept}; a weight changes by up to {looks.moves:.4f} between problems")
        print(f"kind         {looks.kind}")
    for objection in verdict.objections:
        print(f"objection    {objection}")
    print(f"time         {verdict.seconds:.1f} s")
    if verdict.form == "python":
        print(f"\n{NOT_EXCLUDED}")
    print("qualified" if verdict.qualified else "not qualified")


if __name__ == "__main__":
    main()
