"""experiments/README.md, the index of the findings, from the front matter of their pages."""

from collections.abc import Sequence
from itertools import groupby

from lab.site.findings import Page

INTRODUCTION = """# Findings

What the lab has found: a page for each finding, which is cited by its id. A page says what is claimed, shows the
numbers, says what must be said with them, and how to run it again. Negative results stay. A finding **holds**, is
**negative** (what was hoped for did not happen), **open** (the evidence does not decide it) or **superseded** (another
finding has taken its place, and the page says which).

Figures in brackets are 95 % intervals over seeds and problems (`lab.numbers.statistics.seeds_proportion`). Mostly, all
seeds of a setting are asked the same problems, which count once. Where `results.csv` has a row for each seed, intervals
are computed from it. Where only a mean over seeds was kept, its interval is the published one; on pages dated before
2026-11-28, it counts each seed's answer as a problem of its own and is too narrow where seeds agree.

Shares are exact match unless the page says otherwise. "Zen 3" is a machine with two AMD EPYC cores without bfloat16
instructions, "Zen 4" one with two that have them (avx512_bf16), and "AMX" one with an Intel Xeon core, seen as two
(hypercores), that multiplies matrices in bfloat16. On the last two, the lab trains in bfloat16. Speeds are ratios
within one run, because other work on the machine makes them vary by a quarter and more.

"The paper" is the Number Cookbook ([arXiv 2411.03766](https://arxiv.org/abs/2411.03766)), NUPA its benchmark, and S, M,
L and XL its ranges of length. Hard sums come in three strata: long carries, nines and a short number, nines and a long
one. Coupled ids tell a model the place of each digit. The [glossary](../docs/concepts.md) has the other terms, and
[related work](../docs/related-work.md) says what others found and what is new here.

"SmolLM2-135M" is the embedded model: SmolLM2-135M-Instruct from a file of 4-bit weights (GGUF, Q4_1), which the lab
dequantizes. The weights that were trained were at hand for no page, so nothing here compares the two.

A finding is a folder: its page, its data (`results.csv`), what its numbers and tables compute from the data
(`slots.yaml`), its figure, and often the script that measures (`run.py`). `python -m experiments.render` writes every
number between two marks, such as `<!--thousand-->100<!--/-->`, every figure, and this page; with `--check`, it names
what is not as the data say. Scripts that several findings share lie beside this page. They leave results beside their
runs (`checkpoints/results/`). Findings that newer ones replace are in [the archive](archive.md), and what was tried and
is no finding is in [the log](../docs/log.md).

## Where to start

Each line is a story; read its pages in this order.

- **Why adders fail on long numbers, and what mends it:** {F-013}, {F-072}, {F-076}, {F-073}, {F-014}, {F-059}, {F-050}.
- **Numbers as people write them, nothing reversed:** {F-054}, {F-056}, {F-058}, {F-077}.
- **What a pretrained model learns of the paper's tasks:** {F-002}, {F-045}, {F-078}, {F-079}, {F-042}.
- **A pretrained model that adds a thousand digits:** {F-052}, {F-043}, {F-053}.
- **What heads hold, and how far instruments can be trusted:** {F-031}, {F-083}, {F-085}, {F-084}, {F-070}.
- **Rules and their cost:** {F-005}, {F-060}, {F-061}, {F-062}, {F-064}.
- **How small an adder can be:** {F-034}, {F-090}.
"""


def index(pages: Sequence[Page]) -> str:
    """The README: the introduction and a table for each group of `pages`, which come in the order of the groups."""
    groups = groupby(pages, key=lambda page: page.finding.group)
    introduction = INTRODUCTION.format_map({page.finding.id: _link(page) for page in pages})
    return "\n".join([introduction, *(_table(group, list(found)) for group, found in groups)])


def _table(group: str, pages: Sequence[Page]) -> str:
    head = ["| id | claim | status | key figure |", "|---|---|---|---|"]
    return "\n".join([f"## {group.capitalize()}\n", *head, *map(_row, pages), ""])


def _row(page: Page) -> str:
    found = page.finding
    return f"| {_link(page)} | {found.claim} | {found.status} | {found.headline} |"


def _link(page: Page) -> str:
    return f"[{page.finding.id}]({page.path.parent.name}/README.md)"
