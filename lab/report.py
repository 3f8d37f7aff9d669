"""One page that shows everything: run directories in, one static site out that opens offline.

    python -m lab.report RUNS [RUNS ...] [--out FOLDER] [--experiments FOLDER]

RUNS are run directories or folders of them. The site is one page (FOLDER/index.html) with side files that it loads
when they are asked for; it needs no server and no network. What a run did not measure is shown as not measured; a run
that is unfinished or damaged is listed as such. A site that is there already is replaced.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from lab.errors import exit_cleanly

EXPERIMENTS = Path(__file__).parents[1] / "experiments"


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lab.report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS", help="run directories, or folders of them")
    parser.add_argument("--out", type=Path, default=Path("report"), help="where the site is written (report)")
    parser.add_argument("--experiments", type=Path, default=EXPERIMENTS, help="folder of the findings (experiments)")
    options = parser.parse_args(argv)
    report(options.runs, options.out, options.experiments)


def report(runs: Sequence[Path], out: Path, experiments: Path = EXPERIMENTS) -> Path:
    from lab.site import pages
    from lab.site.gather import gather

    pages.check(out)
    records = gather(runs)
    page = pages.write(records, out, experiments)
    for record in records:
        for note in record.notes:
            print(f"{pages.plain(record.name)}: {pages.plain(note)}")
    print(f"{pages.counted(len(records), 'run')}; open {page}")
    return page


if __name__ == "__main__":
    main()
