"""Open a model up and measure how it adds.

Opens a run directory or a pretrained model in TransformerLens, checks that it computes what the model computes, and
measures it with each instrument of the config: where its heads look, where the carry is, what changing either does.
Leaves every array with its axes and intervals (probe_<instrument>.json), tables, and one page with figures and
attention patterns that opens offline. Instruments that have finished are not run again with resume=true.
"""

import sys
from collections.abc import Sequence

from lab.config.loading import parse_command_line
from lab.errors import exit_cleanly
from lab.probing.config import ProbeConfig
from lab.progress import quiet_libraries
from lab.runs import Run


@exit_cleanly
def main(argv: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if argv is None else argv
    config = parse_command_line(ProbeConfig, arguments, "python -m lab.probe", __doc__ or "")
    Run.check(config.path, config.resume, config.overwrite)
    probe(config)


def probe(config: ProbeConfig) -> None:
    from lab.probing import page as probing
    from lab.probing.bridge import open_model
    from lab.probing.charts import table
    from lab.probing.instruments import INSTRUMENTS, Session
    from lab.probing.measured import Measured

    quiet_libraries()
    session = Session(open_model(config.subject, config.sums.template), config)
    with config.open_run() as run:
        run.record_environment(device=str(session.subject.device))
        found: list[Measured] = []
        for name in config.instruments:
            stored = f"probe_{name}"
            if not (run.path / f"{stored}.json").exists():
                print(f"{name} ...", flush=True)
                run.write_json(stored, [part.to_json() for part in INSTRUMENTS[name](session)])
            found += [Measured.from_json(part) for part in run.read_json(stored)]
        run.write_text("tables.md", "\n\n".join(f"{t.title}\n\n{t.markdown()}" for t in map(table, found)))
        attention = [probing.Attention(*part) for part in session.attention()]
        page = probing.page(f"{config.name}: {config.subject}", session.facts, found, attention)
        run.write_text("page.html", page)
        print(f"run directory: {run.path}; open {run.path / 'page.html'}")


if __name__ == "__main__":
    main()
