"""Compare the cost of rule-following CoT with that of direct answers, on the same problems and the same device.

Measures seconds, tokens, memory and accuracy of each way to answer, by task and length. Rules are followed in two
ways: with the shared beginning of the prompts computed only once, and in the plain loop over `generate`. Direct answers
are computed in batches of the same size, in batches that take as much memory as following rules does, and in the plain
loop. Every answer is written to disk as soon as it arrives; if a run is killed, resume=true continues it.

    lab cost CONFIG [key.sub=value ...]     measure, and write a run directory
    lab cost RUN [RUN ...] [out=FOLDER] [names=[NAME, ...]]
                                            show accuracy against cost, in finished runs of any command that asks
                                            NUPA's problems; FOLDER gets tables and a figure
"""

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from lab.command import ResultsFolder, entry_point, read_config, read_options
from lab.config.cost import CostConfig
from lab.config.schema import Section, chosen
from lab.models.sources import check_name
from lab.progress import quiet_libraries
from lab.runs import Run
from lab.text.rule_following import check_rules


class FrontierOptions(Section):
    """The options of accuracy against cost."""

    out: ResultsFolder | None = None
    """Folder for tables and a figure."""
    names: list[str] = Field(default=[])
    """What to call the runs, in their order; by default, the names of their directories."""


@entry_point
def main(arguments: list[str]) -> None:
    if arguments and Path(arguments[0]).is_dir():
        frontier(arguments)
        return
    config = read_config(CostConfig, arguments, "lab cost", __doc__ or "")
    config.check_run()
    check_name(config.direct.name, "direct.name")
    check_name(config.rule_following.name, "rule_following.name")
    check_rules(chosen(config.tasks), config.rules)
    compare(config)


def compare(config: CostConfig) -> None:
    """Measures every way to answer, and writes a run directory with tables and figures."""
    quiet_libraries()
    from lab.benchmarks.cost import figures
    from lab.benchmarks.cost import tables as cost
    from lab.benchmarks.cost.measuring import measured
    from lab.benchmarks.cost.scoring import cache_bytes, equal_memory_batch, summarize
    from lab.benchmarks.nupa.scoring import Nupa
    from lab.drawing.terminal import end, show
    from lab.engines.local import LocalEngine
    from lab.engines.plain import PlainEngine
    from lab.models import loading, pretrained
    from lab.numbers.sampling import distinct_problems
    from lab.text.wording import RuleFollowing

    loading.load(config.direct)  # if this model cannot be loaded, fail now and not hours later
    model, tokenizer = loading.load(config.rule_following)
    size = config.batch_size
    engines: dict[str, LocalEngine | PlainEngine] = {
        "rule following, shared prefix": LocalEngine(model, tokenizer, size)
    }
    if config.plain:
        engines["rule following, plain loop"] = PlainEngine(model, tokenizer, size)
    drawn = (distinct_problems(cell, "test", config.seed, config.problems_per_length) for cell in config.cells)
    following = Nupa([problem for problems in drawn for problem in problems], RuleFollowing(config.rules))
    following.within_window(engines["rule following, shared prefix"])
    answering = Nupa(following.problems)

    with config.open_run() as run:
        run.record_environment(device=pretrained.describe(model))
        rules = {name: measured(name, following, engine, run) for name, engine in engines.items()}
        del model, engines  # there may be memory for only one large model
        model, tokenizer = loading.load(config.direct)
        answers = {"direct": measured("direct", answering, LocalEngine(model, tokenizer, size), run)}
        room = equal_memory_batch(answers["direct"], cache_bytes(rules["rule following, shared prefix"]))
        more: dict[str, LocalEngine | PlainEngine] = {"direct, equal memory": LocalEngine(model, tokenizer, room)}
        if config.plain:
            more["direct, plain loop"] = PlainEngine(model, tokenizer, size)
        answers |= {name: measured(name, answering, engine, run) for name, engine in more.items()}

        summary = summarize(answers, rules, following.left_out)
        run.write_json("summary", summary.to_json())
        tables = cost.all_tables(summary)
        shown = [tables[name] for name in ("variants", "ratios", "tasks")]
        run.write_text("table.md", "\n".join(table.page() for table in shown))
        run.write_text("lengths.md", tables["lengths"].page())
        figures.cost_by_length(summary, "What an answer costs", run.figures / "cost.png")
        show(shown)
        if following.note:
            print(following.note)
        then = f"lab cost {run.path} OTHER_RUN out=frontier; lab report {run.path} out=report"
        end(cost.in_short(summary), f"{run.path} (table.md, lengths.md, figures/)", then)


def frontier(arguments: Sequence[str]) -> None:
    """Print the cost of right answers in finished runs; with out=FOLDER, also write the table and a figure there."""
    from lab.benchmarks.cost import frontier as cost
    from lab.drawing.terminal import show, wide

    runs, options = read_options(FrontierOptions, arguments, "lab cost", __doc__ or "", "RUN [RUN ...]")
    out = options.out
    if out:
        Run.check_writable(out)
    rows = cost.points(cost.ways(map(Path, runs), options.names))
    table = cost.table(rows)
    show([table], wide())
    print(*cost.in_short(rows), sep="\n")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "frontier.md").write_text(table.page(), encoding="utf-8")
        (out / "frontier.csv").write_text(table.csv(), encoding="utf-8")
        cost.draw(rows, "Accuracy against cost, on the problems that all runs were asked", out / "frontier.png")
    print(f"tables and figure: {out or 'out=FOLDER writes them'}")


if __name__ == "__main__":
    main()
