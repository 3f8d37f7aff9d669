"""What the instruments of lab/probing measured, on one page that opens offline. It has sentences that say what was
found, a drawing of the circuit, and a section for each instrument, whose figures are folded until a reader wants them.

plotly draws the figures, and CircuitsVis the attention patterns. The page contains the scripts of both, so it needs no
network. Text from a model's vocabulary is treated as data, never as markup.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from lab.drawing.tables import Table
from lab.probing.charts import figure, groups, table
from lab.probing.measured import Measured
from lab.probing.report.assembly import circuit
from lab.probing.report.circuit import svg, template

_ROWS = 200
"""The largest number of rows of a table on the page; the whole array is in the run directory."""


class Attention(NamedTuple):
    """The attention patterns of some heads on one text."""

    title: str
    tokens: list[str]
    heads: list[str]
    pattern_HTT: np.ndarray


class Section(NamedTuple):
    """What one instrument found."""

    name: str
    look_for: str
    """What to look for in its figures."""
    measured: Sequence[Measured]
    verdicts: Sequence[str]
    failure: str = ""
    """Why it could not measure; empty if it could."""
    unable: bool = False
    """Whether the verdicts say that the subject cannot do what is probed."""

    @property
    def id(self) -> str:
        return self.name.replace("_", "-")

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


def page(title: str, facts: Sequence[str], sections: Sequence[Section], attention: Sequence[Attention]) -> str:
    """The page as one HTML file that contains everything it needs."""
    import circuitsvis
    from plotly.offline import get_plotlyjs

    patterns = [
        {
            "attention": np.round(item.pattern_HTT, 3).tolist(),
            "tokens": item.tokens,
            "attentionHeadNames": item.heads,
            "maskUpperTri": True,
        }
        for item in attention
    ]
    number = itertools.count()
    drawn = circuit({section.name: section.measured for section in sections})
    drawing = files(circuitsvis).joinpath("dist/cdn/iife.js").read_text(encoding="utf-8") if attention else ""
    return template("page.html").render(
        title=title,
        facts=facts,
        style=files("lab.drawing").joinpath("page.css").read_text(encoding="utf-8"),
        diagram=svg(drawn),
        of_sums=drawn.what == "carry",
        sections=[(section, _parts(section, number)) for section in sections],
        most_rows=_ROWS,
        attention=[item.title for item in attention],
        figures=_script([figure(*together) for section in sections for together in groups(section.measured)]),
        patterns=_script(patterns),
        plotly=get_plotlyjs().replace("</script", "<\\/script"),
        circuitsvis=drawing.replace("</script", "<\\/script"),
    )


class Part(NamedTuple):
    """A figure of one or several arrays beside each other, and their tables."""

    number: int
    """The number of the figure on the page."""
    title: str
    beside: bool
    """Whether several heat maps are beside each other."""
    tables: Sequence[Table]


def _parts(section: Section, number: Iterator[int]) -> list[Part]:
    return [
        Part(
            next(number),
            "; ".join(one.name for one in together),
            len(together) > 1 and len(together[0].axes) > 1,
            list(map(table, together)),
        )
        for together in groups(section.measured)
    ]


def _script(value: Any) -> str:
    """JSON that cannot end the script element around it."""
    return json.dumps(value).replace("<", "\\u003c")
