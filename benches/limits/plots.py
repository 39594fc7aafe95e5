"""Plots of the benchmark pages as SVG, drawn by matplotlib.

Lines and text have the color of the text around them (`currentColor`), so that plots follow the theme of the site.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

# Told apart by people who see few colours, too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
DASHES = ("-", "--")
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "letterhead"}


@dataclass(frozen=True)
class Series:
    """Points that belong together; `fit` is drawn as a dotted line below them."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = "-"
    fit: Callable[[float], float] | None = None


def lines(title: str, across: str, up: str, series: Sequence[Series], *, log_up: bool = False) -> str:
    """Draw series over numbers that grow by factors."""
    figure, axes = _figure(title, 3.5)
    xs = [x for line in series for x, _ in line.points]
    for line in series:
        at, heights = zip(*line.points, strict=True)
        if line.fit is not None:
            least = min(y for every in series for _, y in every.points)
            axes.plot(at, [max(line.fit(x), least) for x in at], ":", color=line.colour, linewidth=1)
        axes.plot(at, heights, line.dash, color=line.colour, marker="o", markersize=3, label=line.name)
    if min(xs) == 0:
        # 0 has no place among factors: it is drawn at the left end.
        axes.set_xscale("symlog", linthresh=min(x for x in xs if x > 0))
    else:
        axes.set_xscale("log")
    if log_up:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))
    axes.set(xlabel=across, ylabel=up)
    axes.grid(color="#ddd")
    figure.legend(loc="outside right upper", frameon=False)
    return _svg(figure)


def bars(title: str, across: str, groups: Sequence[tuple[str, str, float, str]], mark: float = 1) -> str:
    """Draw a bar for each (label, note, number, colour); a line stands at `mark`, where both sides take the same time."""
    figure, axes = _figure(title, 0.9 + 0.27 * len(groups))
    labels, notes, values, colours = zip(*groups, strict=True)
    drawn = axes.barh(range(len(groups)), values, color=colours, height=0.7)
    axes.bar_label(drawn, notes, padding=4)
    axes.set_yticks(range(len(groups)), labels)
    axes.invert_yaxis()
    axes.axvline(mark, color="#333", linewidth=1.5)
    axes.set(xlabel=across, xlim=(0, max(*values, mark) * 1.12))
    axes.grid(axis="x", color="#ddd")
    return _svg(figure)


def speeds(comparisons: Sequence[tuple[str, float, str, tuple[float, float] | None]]) -> str:
    """Draw how many times faster or slower we are, from (job, time of the alternative where ours is 1, note, spread).

    A thin line spans the least and the greatest ratio of a round, where the spread is known. Labels stand above their bars, so that the text is large enough on narrow screens.
    """
    figure = Figure(figsize=(3.7, 0.3 + 0.4 * len(comparisons)), layout="constrained")
    axes = figure.subplots()
    for at, (name, ratio, note, spread) in enumerate(comparisons):
        width = math.log10(ratio)
        axes.barh(at, width, height=0.32, color=COLOURS[0] if width > 0 else COLOURS[1])
        axes.text(0.03, at - 0.36, name, fontsize=8, va="center")
        ends = [width, *map(math.log10, spread or ())]
        if spread is not None:
            axes.plot(ends[1:], (at, at), color="#333", linewidth=1, marker="|", markersize=5)
        axes.text(max(*ends, 0) + 0.04, at, note, fontsize=8, va="center", fontweight="bold")
    axes.axvline(0, color="#333", linewidth=1)
    least = min(min((ratio, *(spread or ()))) for _, ratio, _, spread in comparisons)
    axes.set_xlim(min(0, math.log10(least)) - 0.02, 3.3)
    axes.set_ylim(len(comparisons) - 0.6, -0.7)
    axes.axis("off")
    return _svg(figure)


def _figure(title: str, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.5, height), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontweight="bold", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return written.getvalue()


def themed(svg: str, name: str) -> str:
    """Return a plot in the color of its surroundings, with ids that are unique among the plots of a page.

    Where nothing surrounds it, as in a viewer of images, it is grey.
    """
    svg = svg[svg.index("<svg ") :]
    svg = svg.replace("<svg ", '<svg color="#6b7280" fill="currentColor" ', 1)
    svg = re.sub(r"#d{3,6}\b", "currentColor; stroke-opacity: 0.2", svg)
    svg = re.sub(r"#(000000|333333)\b", "currentColor", svg)
    return re.sub(r"""(\bid="|url\(#|href="#)""", rf"\1{name}-", svg)


def _thousands(value: float) -> str:
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"
