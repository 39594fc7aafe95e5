"""Format a scan as an HTML page: a single file without scripts or external resources."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence

from letterhead._formatting import as_text, printable, quote, space_hex
from letterhead._optional_dependencies import install_hint
from letterhead.scan.guesses import CONFIDENCES
from letterhead.scan.key import KeyScan, find_tied_types, percent, read_as_guessed, summary
from letterhead.scan.sketch import EXACT, Histogram, Sampled

_MAX_PLOTTED_KEYS = 100
"""Maximum number of keys with histograms; plotting takes about 25 ms for each key."""

_MAX_BARS = 32
_INK, _BAR = "#7a8594", "#2f6fb3"  # readable on light and on dark pages

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6675; --paper: #fff; --line: #cfd6df; --panel: #f6f8fa; --good: #2c7a4b; --doubt: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ef; --dim: #9aa6b5; --paper: #14181e; --line: #343d49; --panel: #1b2129; --good: #63c38a; --doubt: #d9a94a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 66rem; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 50rem; } .dim, figcaption { color: var(--dim); } a { color: inherit; }
code, pre, .mono { font: 13px/1.5 ui-monospace, monospace; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--dim); font-size: 13px; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.key { overflow-wrap: anywhere; min-width: 9rem; max-width: 18rem; } td.number, th.number { text-align: right; }
meter { margin-right: .5rem; height: .8rem; vertical-align: middle; }
section { border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1.1rem; margin: 1rem 0; }
.head { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; margin-bottom: .4rem; }
.plots { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .5rem 0; } figure { margin: 0; } figcaption { font-size: 13px; }
.tag { border-radius: 4px; padding: 0 .4rem; font-size: 13px; background: var(--panel); border: 1px solid var(--line);
  white-space: nowrap; }
.stated, .strong { color: var(--good); } .weak, .tie { color: var(--doubt); } .nowrap { white-space: nowrap; }
details { margin-top: .4rem; } summary { cursor: pointer; color: var(--dim); } dl { columns: 2; } dt { font-weight: 600; }
dd { margin: 0 0 .4rem; } @media (max-width: 40rem) { dl { columns: 1; } }
"""


def page(title: str, headline: str, remarks: Sequence[str], keys: Sequence[KeyScan], code: str) -> str:
    """Return the HTML page of a scan."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{text(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{text(title)}</h1><p>{text(headline)}.</p>",
        *(f'<p class="dim">{text(remark[0].upper() + remark[1:])}.</p>' for remark in remarks),
        "<h2>Keys</h2>",
        _overview(keys),
        "<h2>Code</h2><p>With the first suggested type of each key; the comments tell how certain it is.</p>",
        "<pre>" + "\n".join(map(text, code.splitlines())) + "</pre>",
        "<h2>Each key</h2>",
        '<p class="dim">A bar shows the number of bits that encode a sample of the distinct values as the type, compared '
        "with their plain bytes: the shorter, the better the type explains them.</p>",
        *(_section(index, key) for index, key in enumerate(keys)),
        "<h2>Confidence</h2>",
        "<dl>",
        *(f'<dt class="{word}">{word}</dt><dd>{text(meaning)}</dd>' for word, meaning in CONFIDENCES.items()),
        "</dl></body></html>",
    ]
    return "\n".join(parts) + "\n"


def text(value: str) -> str:
    """Escape text for HTML, including unprintable characters."""
    return html.escape(printable(value))


def _overview(keys: Sequence[KeyScan]) -> str:
    rows = []
    for index, key in enumerate(keys):
        statistics, cells = key.statistics, summary(key)
        present = _meter(statistics.rows, key.of_rows, f"in {statistics.rows:,} of {key.of_rows:,} rows")
        null = _meter(statistics.nulls, statistics.headers, f"{statistics.nulls:,} of {statistics.headers:,} null")
        rows.append(
            f'<tr><td class="key mono"><a href="#key-{index}">{text(cells["key"])}</a></td>'
            f'<td class="nowrap">{present}{cells["rows"]}</td>'
            f'<td class="nowrap">{null}{cells["null"]}</td>'
            f'<td class="number nowrap">{percent(statistics.repeated, statistics.rows)}</td>'
            f'<td class="number nowrap">{cells["bytes"]}</td><td class="number">{statistics.sizes.total:,}</td>'
            f'<td class="number">{cells["position"]}</td><td>{_tag(key)}</td></tr>'
        )
    head = "<th>key</th><th>rows with it</th><th>null</th>" + "".join(
        f'<th class="number">{name}</th>' for name in ("repeated", "bytes", "in total", "position")
    )
    return f'<div class="wide"><table><thead><tr>{head}<th>suggested type</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _meter(part: float, whole: float, label: str) -> str:
    return f'<meter value="{part:.0f}" max="{max(whole, 1):.0f}" title="{label}" aria-label="{label}"></meter>'


def _tag(key: KeyScan) -> str:
    confidence = key.guesses[0].confidence
    return f'<code>{text(" or ".join(find_tied_types(key)))}</code> <span class="tag {confidence}">{confidence}</span>'


def _section(index: int, key: KeyScan) -> str:
    statistics = key.statistics
    repeated = (
        f"repeated in {statistics.repeated:,} rows, at most {statistics.most} times"
        if statistics.repeated
        else "never repeated"
    )
    facts = [
        f"{statistics.headers:,} headers in {statistics.rows:,} of {key.of_rows:,} rows",
        f"{statistics.nulls:,} null; {statistics.empty:,} empty; {repeated}",
        f"{'' if statistics.sample.is_all else 'about '}{statistics.distinct:,} distinct",
    ]
    figures = (("bytes of a value", statistics.sizes), ("position in the row, from 0", statistics.positions))
    plots = "".join(_figure(caption, numbers, index < _MAX_PLOTTED_KEYS) for caption, numbers in figures)
    return (
        f'<section id="key-{index}"><div class="head"><h3>{text(key.name)}</h3>{_tag(key)}</div>'
        f'<p class="dim">{"; ".join(facts)}</p><div class="plots">{plots}</div>{_guesses(key)}{_examples(key)}</section>'
    )


def _figure(quantity: str, numbers: Histogram, drawn: bool) -> str:
    if numbers.low is None:
        return ""
    spread = (
        f"{numbers.low:,} / {numbers.median():,} / {numbers.high:,}"
        if numbers.low != numbers.high
        else f"always {numbers.low:,}"
    )
    caption = f"{quantity}: {spread}" + (" (least, median, greatest)" if numbers.low != numbers.high else "")
    return (
        f"<figure>{_histogram(numbers, quantity=quantity) if drawn else ''}<figcaption>{caption}</figcaption></figure>"
    )


def _guesses(key: KeyScan) -> str:
    plain = max((guess.bits for guess in key.guesses if guess.bits is not None), default=0.0)
    rows = []
    for guess in key.guesses:
        bits = f"{guess.bits or 0:,.0f}"
        drawn = _meter(guess.bits, plain, f"{bits} bits") + bits if guess.bits is not None and plain else ""
        rows.append(
            f'<tr><td class="nowrap"><code>{guess.type}</code></td>'
            f'<td><span class="tag {guess.confidence}">{guess.confidence}</span></td>'
            f'<td class="nowrap">{drawn}</td><td>{text(guess.evidence)}</td></tr>'
        )
    head = "<tr><th>type</th><th></th><th>bits</th><th>evidence</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _examples(key: KeyScan) -> str:
    if not key.examples:
        return ""
    first = key.guesses[0].type
    texts = [read_as_guessed(key, value) for value in key.examples]
    rows = []
    for value, spelt in zip(key.examples, texts, strict=True):
        cells = f'<td class="mono key">{_value(value)}</td>'
        if any(texts):
            cells += f'<td class="number">{text(spelt or "")}</td>'
        rows.append(f'<tr>{cells}<td class="number">{value.size:,}</td><td class="number">{value.count:,}</td></tr>')
    head = "<th>value</th>" + (f'<th class="number">as {first}</th>' if any(texts) else "")
    return (
        f"<details><summary>Examples</summary><table><thead><tr>{head}"
        '<th class="number">bytes</th><th class="number">times</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></details>"
    )


def _value(value: Sampled) -> str:
    shown = as_text(value.head)
    return (space_hex(value.head) if shown is None else html.escape(quote(shown))) + ("" if value.whole else " …")


def _histogram(numbers: Histogram, *, quantity: str) -> str:
    """Return a histogram as an SVG element; it needs matplotlib."""
    with install_hint("a page with plots", "letterhead[plots]"):
        import matplotlib
        from matplotlib.figure import Figure
    bars = _bars(numbers)
    if not bars:
        return ""
    figure = Figure(figsize=(2.9, 0.85))
    axes = figure.add_axes((0.14, 0.24, 0.82, 0.62))
    axes.bar(range(len(bars)), [count for _, _, count in bars], color=_BAR, width=0.9 if len(bars) > 1 else 0.2)
    axes.set_xlim(-0.6, max(len(bars) - 0.4, 1))
    ends = [0, len(bars) - 1] if len(bars) > 1 else [0]
    axes.set_xticks(ends, [f"{bars[0][0]:,}", f"{bars[-1][1]:,}"][: len(ends)], fontsize=7, color=_INK)
    highest = max(count for _, _, count in bars)
    axes.set_yticks([highest], [f"{highest:,}"], fontsize=7, color=_INK)
    axes.tick_params(color=_INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(_INK)
    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": quantity}):
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(written, format="svg", transparent=True, metadata=no_metadata)
    drawn = written.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", f'<svg class="plot" role="img" aria-label="{quantity}"', 1)


def _bars(numbers: Histogram) -> Sequence[tuple[int, int, int]]:
    """Return the smallest and largest number of each bar, and its count."""
    low, high = numbers.low, numbers.high
    if low is None or high is None:
        return []
    if high < EXACT and high - low < _MAX_BARS:
        return [(number, number, numbers.counts.get(number, 0)) for number in range(low, high + 1)]
    # Make each bar at least as wide as the widest bucket.
    width = -(-(high - low + 1) // (_MAX_BARS // 2))
    counts: dict[int, int] = {}
    for bucket, count in numbers.counts.items():
        index = (max(bucket, low) - low) // width
        counts[index] = counts.get(index, 0) + count
    last = (high - low) // width
    return [
        (low + index * width, min(high, low + (index + 1) * width - 1), counts.get(index, 0))
        for index in range(last + 1)
    ]
