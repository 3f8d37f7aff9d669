"""Open a model up and measure how it adds.

    lab probe CONFIG [key.sub=value ...]
    lab probe benchmark [CONFIG] [key.sub=value ...]

Opens a run directory, a declared adder or a pretrained model in TransformerLens, checks that the opened model computes
the same as the original, and measures it with each instrument of the config: where its heads attend, where the carry
is, and what happens if either is changed. It writes every array with its axes and intervals (probe_<instrument>.json),
tables, and one page with figures and attention patterns that opens offline. An instrument that fails does not stop the
others. With resume=true, instruments that failed or are missing are run, and the others are not run again.

`benchmark` measures the instruments instead, on adders whose circuits are known: how much of a circuit each one finds,
and what it finds that is not there. It writes scores.csv and tables.md.
"""

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.command import entry_point, is_word, read_config
from lab.errors import ConfigError, LabError, ModelError, check_one_of
from lab.models.sources import check_name, is_scratch, resolve
from lab.numbers.tasks import KNOWN
from lab.probing.config import COMPETENCE, LOOK_FOR, BenchmarkConfig, PairsConfig, ProbeConfig
from lab.progress import quiet_libraries

if TYPE_CHECKING:
    from lab.probing.addition.catalogue import Session
    from lab.probing.catalogue import ContrastSession
    from lab.probing.report.page import Section
    from lab.runs import Run


@entry_point
def main(arguments: list[str]) -> None:
    if arguments[:1] == ["benchmark"]:
        # no config is needed: the shipped one measures everything
        given = arguments[1:]
        named = given if given and is_word(given[0]) else ["probe_benchmark", *given]
        return benchmark(read_config(BenchmarkConfig, named, "lab probe benchmark", __doc__ or "", "[CONFIG]"))
    config = read_config(ProbeConfig, arguments, "lab probe", __doc__ or "")
    config.check_run()
    check_name(config.subject, "subject")
    check_template(config.subject, config.sums.template)
    if config.pairs:
        check_pairs(config.subject, config.pairs)
    probe(config)


def check_template(subject: str, template: str) -> None:
    """Raises ConfigError for a template that would be ignored. Call it before loading a model."""
    if template and is_scratch(Path(resolve(subject))):
        what = "is asked in its own notation, because it is a model from scratch"
        raise ConfigError(f"sums.template = {template}: {subject} {what}: leave sums.template out")


def check_pairs(subject: str, pairs: PairsConfig) -> None:
    """Raises ConfigError or TaskError for pairs that cannot be read. Call it before loading a model."""
    if pairs.file and not Path(pairs.file).is_file():
        raise ConfigError(f"pairs.file = {pairs.file}: there is no such file")
    if pairs.task:
        check_one_of("pairs.task", pairs.task, list(KNOWN))
    if pairs.template and is_scratch(Path(resolve(subject))):
        raise ConfigError(f"pairs.template = {pairs.template}: {subject} is asked in its own notation: leave it out")


def probe(config: ProbeConfig) -> None:
    """Measures a model with the instruments of a config, and writes a run directory with tables and a page."""
    quiet_libraries()
    from lab.adders.probing import opened
    from lab.drawing.terminal import end
    from lab.probing.addition.catalogue import Session
    from lab.probing.catalogue import session_of
    from lab.probing.charts import table
    from lab.probing.report import page
    from lab.probing.report.assembly import circuit
    from lab.probing.report.verdicts import in_short

    template = config.pairs.template if config.pairs else config.sums.template
    subject = opened(config.subject, template)
    session = session_of(subject, config) if config.pairs else Session(subject, config)
    with config.open_run() as run:
        run.record_environment(device=str(session.subject.device))
        sections = [_measured(session, run, name) for name in (COMPETENCE, *config.instruments)]
        found = [part for section in sections for part in section.measured]
        run.write_text("tables.md", "\n\n".join(table(part).page() for part in found))
        heads = circuit({section.name: section.measured for section in sections}).heads
        attention = list(itertools.starmap(page.Attention, session.attention(heads)))
        run.write_text("page.html", page.page(f"{config.name}: {config.subject}", session.facts, sections, attention))
        told = [f"{part.name}: {line}" for part in sections for line in part.verdicts or [part.failure] if line]
        run.write_text("verdicts.md", "\n".join(f"- {line}" for line in told) + "\n")
        measured = {section.name: section.measured for section in sections if not section.failure}
        failed = [section.name for section in sections if section.failure]
        end(in_short(measured, failed), run.path, f"open {run.path / 'page.html'} (verdicts.md has all sentences)")
        if all(section.failure for section in sections[1:]):
            raise ModelError(f"{config.subject}: no instrument could measure it; {run.path / 'page.html'} says why")


def benchmark(config: BenchmarkConfig) -> None:
    """Scores the instruments on adders whose circuits are known."""
    config.check_run()
    quiet_libraries()

    from lab.drawing.terminal import wide
    from lab.probing.benchmark import running

    running.chosen(config)
    with config.open_run() as run:
        run.record_environment(device="cpu")
        scores = running.measure(config, run, lambda line: print(line, flush=True))
        shown = running.tables(scores)
        run.write_text("tables.md", "\n\n".join(one.page() for one in shown))
        run.write_text("scores.csv", running.everything(scores).csv())
        wide().print(*(one.terminal() for one in shown))
        print(f"run directory: {run.path}")


def _measured(session: "Session | ContrastSession", run: "Run", name: str) -> "Section":
    """The page's section on an instrument. The instrument is run unless its results are already in the run directory.
    If it fails, the section says why, and the other instruments still run."""
    from lab.probing import catalogue
    from lab.probing.addition.catalogue import INSTRUMENTS
    from lab.probing.measured import Measured
    from lab.probing.report.page import Section
    from lab.probing.report.verdicts import unable, verdicts

    stored = f"probe_{name}"
    of_pairs = isinstance(session, catalogue.ContrastSession)
    measure: Any = (catalogue.INSTRUMENTS if of_pairs else INSTRUMENTS)[name]
    try:
        if not (run.path / f"{stored}.json").exists():
            print(f"{name} ...", flush=True)
            run.write_json(stored, [part.to_json() for part in measure(session)])
    except Exception as error:  # whatever it is, the other instruments can still run
        reason = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        print(f"{name} failed: {reason}", file=sys.stderr)
        return Section(name, LOOK_FOR[name], [], [], " ".join(reason.split()))
    found = [Measured.from_json(part) for part in run.read_json(stored)]
    return Section(name, LOOK_FOR[name], found, verdicts(name, found), unable=unable(name, found))


if __name__ == "__main__":
    main()
