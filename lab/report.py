"""Turn run directories into one page that shows everything: a static site that opens offline.

    lab report RUNS [RUNS ...] [out=FOLDER] [watch=SECONDS]

RUNS are run directories or folders of them. The site is one page (FOLDER/index.html) and files that it loads on demand;
it needs no server and no network. If a run did not measure something, the page says so. Unfinished and damaged runs are
listed as such. An existing site is replaced. With watch=30, the site is written again every 30 seconds as long as a run
is active, and open pages update themselves.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from lab.command import entry_point, read_options
from lab.config.schema import Section
from lab.errors import ConfigError

_NOTES = 5
"""How many notes of runs are printed."""


class ReportOptions(Section):
    """The options of a report."""

    out: Path = Path("report")
    """The folder of the site."""
    watch: int | None = Field(default=None, ge=5)
    """Write the site again every so many seconds as long as one of the runs is active. Open pages update themselves."""


@entry_point
def main(arguments: list[str]) -> None:
    runs, options = read_options(ReportOptions, arguments, "lab report", __doc__ or "", "RUNS [RUNS ...]")
    if not runs:
        raise ConfigError("give run directories, or folders of them, such as: lab report checkpoints")
    paths = list(map(Path, runs))
    report(paths, options.out)
    if options.watch:
        watch(paths, options.out, options.watch)


def watch(runs: Sequence[Path], out: Path, seconds: int) -> None:
    """Writes the site repeatedly, for the last time when all runs have ended."""
    from lab.drawing.tables import counted
    from lab.site import pages
    from lab.site.gather import gather

    running = sum(record.status == "running" for record in gather(runs))
    while running:
        print(f"{counted(running, 'run')} running; again in {seconds} s", flush=True)
        time.sleep(seconds)
        records = gather(runs)
        running = sum(record.status == "running" for record in records)
        pages.write(records, out)


def report(runs: Sequence[Path], out: Path) -> Path:
    """Writes the site once, and returns the path of its page."""
    from lab.drawing.tables import counted
    from lab.site import pages
    from lab.site.gather import gather

    pages.check(out)
    records = gather(runs)
    page = pages.write(records, out)
    notes = [f"{pages.plain(record.name)}: {pages.plain(note)}" for record in records for note in record.notes]
    print(*notes[:_NOTES], sep="\n", end="\n" if notes else "")
    if len(notes) > _NOTES:
        print(f"and {len(notes) - _NOTES} more notes, each on its run's page")
    print(f"{counted(len(records), 'run')}; open {page}")
    return page


if __name__ == "__main__":
    main()
