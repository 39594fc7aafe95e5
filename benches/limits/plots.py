"""Plots as SVG: a few lines of text each, the same for the same figures, readable in a page and in a diff."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 40, 48
INK, FAINT = "#333", "#ddd"
# Told apart by people who see few colours, too.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
DASHES = ("", "6 4")


@dataclass(frozen=True)
class Series:
    """Points that belong together; `fit` is drawn as a thin line below them."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = ""
    fit: Callable[[float], float] | None = None


class Axis:
    """From a number to a place between two ends."""

    def __init__(self, numbers: Sequence[float], start: float, end: float, *, log: bool) -> None:
        self.log = log
        if log:
            self.low, self.high = math.log10(min(numbers)), math.log10(max(numbers))
        else:
            self.low, self.high = 0.0, ceiling(max(numbers))
        self.start, self.end = start, end

    def __call__(self, number: float) -> float:
        share = ((math.log10(number) if self.log else number) - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Give the numbers that are written: powers of ten, or equal steps."""
        if self.log:
            powers = [10.0**power for power in range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)]
            return powers or [10**self.low, 10**self.high]
        step = self.high / 5
        return [step * number for number in range(6)]


def ceiling(number: float) -> float:
    """Give the next number that divides well by five."""
    unit = 10 ** math.floor(math.log10(number))
    return next(times * unit for times in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if times * unit >= number)


def lines(title: str, across: str, up: str, series: Sequence[Series], *, log_up: bool = False) -> str:
    """Draw series over numbers that grow by factors."""
    # What is 0 has no place among factors; it stands at the left end, and is written there.
    positive = [x for each in series for x, _ in each.points if x > 0]
    least = min(positive) / 4 if any(x == 0 for each in series for x, _ in each.points) else min(positive)
    xs = Axis([least, max(positive)], LEFT, WIDTH - RIGHT, log=True)
    heights = [y for each in series for _, y in each.points]
    ys = Axis(heights, HEIGHT - BOTTOM, TOP, log=log_up)
    drawn = [*grid(xs, ys), *names(across, up)]
    if least < min(positive):
        drawn.append(text(xs(least), HEIGHT - BOTTOM + 16, "0", "middle"))
    for place, each in enumerate(series):
        points = [(xs(max(x, least)), ys(y)) for x, y in each.points]
        if each.fit is not None:
            fitted = [(xs(max(x, least)), ys(max(each.fit(x), min(heights)))) for x, _ in each.points]
            drawn.append(path(fitted, each.colour, "2 3", 1))
        drawn.append(path(points, each.colour, each.dash, 2))
        drawn += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{each.colour}">'
            f"<title>{html.escape(each.name)}, {at:,g}: {number(value)}</title></circle>"
            for (x, y), (at, value) in zip(points, each.points, strict=True)
        ]
        y = TOP + 10 + 20 * place
        drawn.append(path([(WIDTH - RIGHT + 14, y), (WIDTH - RIGHT + 42, y)], each.colour, each.dash, 2))
        drawn.append(text(WIDTH - RIGHT + 48, y + 4, each.name))
    return document(title, HEIGHT, drawn)


def bars(title: str, across: str, groups: Sequence[tuple[str, str, float, str]], mark: float = 1) -> str:
    """Draw a bar for each (label, note, number, colour); a line stands at `mark`, where both sides take the same time."""
    step, height = 26, TOP + 26 * len(groups) + BOTTOM
    left = 190
    xs = Axis([mark, *(value for _, _, value, _ in groups)], left, WIDTH - 80, log=False)
    drawn = []
    for tick in xs.ticks():
        drawn.append(path([(xs(tick), TOP), (xs(tick), height - BOTTOM)], FAINT, "", 1))
        drawn.append(text(xs(tick), height - BOTTOM + 16, number(tick), "middle"))
    for place, (label, _, value, colour) in enumerate(groups):
        y = TOP + step * place
        drawn.append(
            f'<rect x="{left}" y="{y + 4:.1f}" width="{xs(value) - left:.1f}" height="{step - 8}" fill="{colour}"/>'
        )
        drawn.append(text(left - 8, y + 17, label, "end"))
    drawn.append(path([(xs(mark), TOP), (xs(mark), height - BOTTOM)], INK, "", 1.5))
    for place, (_, note, value, _) in enumerate(groups):
        # White behind it: the line and the grid may pass there.
        words = text(xs(value) + 6, TOP + step * place + 17, note)
        drawn += [words.replace("<text ", '<text stroke="#fff" stroke-width="4" ', 1), words]
    drawn.append(text((left + WIDTH - 80) / 2, height - 10, across, "middle"))
    return document(title, height, drawn)


def grid(xs: Axis, ys: Axis) -> Iterator[str]:
    """Draw lines for the numbers that are written."""
    for tick in xs.ticks():
        yield path([(xs(tick), TOP), (xs(tick), HEIGHT - BOTTOM)], FAINT, "", 1)
        yield text(xs(tick), HEIGHT - BOTTOM + 16, thousands(tick), "middle")
    for tick in ys.ticks():
        yield path([(LEFT, ys(tick)), (WIDTH - RIGHT, ys(tick))], FAINT, "", 1)
        yield text(LEFT - 8, ys(tick) + 4, thousands(tick), "end")


def names(across: str, up: str) -> Iterator[str]:
    """Name the two axes."""
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, across, "middle")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = text(14, middle, up, "middle")
    yield turned.replace("<text ", f'<text transform="rotate(-90 14 {middle:.1f})" ', 1)


def path(points: Sequence[tuple[float, float]], colour: str, dash: str, width: float) -> str:
    """Draw a line through points."""
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Write some words."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def thousands(value: float) -> str:
    """Write a number of an axis."""
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{sign}"
    return number(value)


def number(value: float) -> str:
    """Write a number with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def document(title: str, height: int, drawn: Sequence[str]) -> str:
    """Put it together, on white, so that it reads on any page."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="{html.escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="{INK}">'
    )
    name = f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{html.escape(title)}</text>'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>', name, *drawn, "</svg>"]) + "\n"
