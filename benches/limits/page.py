"""Write the figures of docs/benchmarks.md, and its plots, from the records under `benches/record`.

What stands between `<!-- record: NAME -->` and `<!-- end -->` in the page is made by the function of that name here, so no
figure of it is typed by hand. tests/python/test_benchmark_page.py holds the page to the records.

    python -m benches.limits.page
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benches import goal, run, typed
from benches.limits import plots
from benches.limits.report import BATCH, JAVA_BATCHES, OURS, PLAIN, PYTHON, Record
from benches.spark import pairs

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "plots"
SECTION = re.compile(r"(<!-- record: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

JOBS = ("decode", "encode", "select", "select from lists", "validate", "convert")
GROWING = ("decode", "encode", "select", "validate")
CORPORA = ("A", "B", "C")
DIRECT = {OURS: "topic", f"{OURS}, segments": "segments"}
CRATES = {("decode", "iggy"): 4.0, ("decode", "iggy-2023"): 6.0}
ONE_MESSAGE = {"decode one message": 3.0, "one header of one message": 5.0}
AXES = {
    "rows": ("rows in all, in batches of 64,000", "a row"),
    "headers": ("headers a row", "a header"),
    "value bytes": ("bytes a value", "a byte of a value"),
}


def main() -> None:
    """Write the page and the plots anew."""
    PAGE.write_text(filled(PAGE.read_text()))
    PLOTS.mkdir(exist_ok=True)
    for name, drawn in drawn_plots().items():
        (PLOTS / name).write_text(drawn)
    print(f"{PAGE.relative_to(ROOT)} and {PLOTS.relative_to(ROOT)}/ say what benches/record does")


def filled(page: str) -> str:
    """Give the page with what the records say in each of its sections."""
    return SECTION.sub(lambda found: f"{found[1]}\n{SECTIONS[found['name']]()}\n\n{found[3]}", page)


@cache
def limits() -> Record:
    """Give the record of the limits."""
    return Record.read()


def other(name: str) -> Any:
    """Give another record; None where it was not made."""
    path = run.RECORD / name
    return json.loads(path.read_text()) if path.exists() else None


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Write a Markdown table; columns after the first `left` are numbers."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def digits(value: float) -> str:
    """Write a time or a ratio with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


# The limits of one core.


def machine() -> str:
    """Say on what, when, and with what the limits were measured."""
    made, on = limits().made, limits().made["machine"]
    (features,) = {" ".join(row["features"]) for row in made["results"] if "features" in row}
    sources = f"`{on['commit']}`" + (", with changes that were not committed" if on["changed"] else "")
    return table(
        ["", ""],
        [
            ["processor", f"{on['processor']}, {on['cores']} cores, of which one was used"],
            ["features found at run time", features or "none"],
            ["system", f"{on['system']}, transparent huge pages: {on['huge_pages']}"],
            ["versions", f"{on['rust']}; Python {on['python']}; {on['java']}; Kafka {on['kafka']}"],
            ["allocator", f"{on['allocator']}, as in the wheel"],
            ["sources", sources],
            ["taken", f"{made['taken']}, in {made['minutes']:.0f} minutes"],
            ["load at the start of each turn", ", ".join(map(str, made["load"]))],
        ],
        left=2,
    )


def corpora() -> str:
    """Say what the corpora hold."""
    names = ("rows", "bytes", "headers", "key_bytes", "value_bytes", "nulls")
    held = limits().made["corpora"]
    return table(
        ["corpus", "rows", "bytes", "headers", "bytes of keys", "bytes of values", "null values"],
        [[name, *(f"{held[name][part]:,}" for part in names)] for name in held],
    )


def losses() -> str:
    """Say which of the goals are missed, and what else is slower than one may expect."""
    record = limits()
    bars = record.bars()
    missed = [f"{bar.what}: {digits(bar.figure)}" for bar in bars if bar.verdict == "missed"]
    parts = [
        f"Of {len(bars)} goals that we set ourselves for one core, {len(missed)} are **missed**: {'; '.join(missed)}."
        if missed
        else f"The {len(bars)} goals that we set ourselves for one core are reached.",
        f"Against memory: in batches of {BATCH:,} rows, whose memory comes back, a decode takes "
        f"{of_each(lambda corpus: record.to_memcpy('decode', corpus, BATCH))} times as long as a copy of as many bytes; all "
        f"at once, a million rows take {of_each(lambda corpus: record.to_memcpy('decode', corpus, record.whole(corpus)))} "
        "times as long.",
        f"Into memory that was never touched: all at once, a million rows take "
        f"{of_each(record.fresh)} times as long as in such batches.",
    ]
    found = other("from-your-query.json")
    slower = [result for result in found["results"] if result["ratio"] < 1] if found is not None else []
    if slower:
        named = " and ".join(f"{result['title']} ({digits(result['ratio'])} of our time)" for result in slower)
        parts.append(f"In Spark: {named} are faster than we are, and check nothing.")
    return "\n".join(f"* {part}" for part in parts)


def of_each(figure: Callable[[str], float]) -> str:
    """Write a figure of each corpus."""
    return ", ".join(f"{corpus} {digits(figure(corpus))}" for corpus in CORPORA)


def bars() -> str:
    """Give every goal of one core, and whether it is reached."""
    rows = []
    for bar in limits().bars():
        sign = "≥" if bar.at_least else "≤"
        rows.append([bar.what, f"{sign}\N{NO-BREAK SPACE}{bar.goal:g}", digits(bar.figure), marked(bar.verdict)])
    return table(["ratio", "goal", "x", ""], rows)


def batches() -> str:
    """Give every job on every corpus in every size of batch."""
    record = limits()
    parts = []
    for corpus in CORPORA:
        sizes = record.batches(corpus)
        rows = []
        for job in ("memcpy", *JOBS):
            cells = []
            for size in sizes:
                if job == "memcpy":
                    cells.append(digits(record.ns(job, corpus, size, side=job)))
                elif (OURS, corpus, job, size, "released") not in record.rows:
                    cells.append("")
                else:
                    ratio = f" ({digits(record.to_memcpy(job, corpus, size))})" if job in ("decode", "encode") else ""
                    cells.append(digits(record.ns(job, corpus, size)) + ratio)
            rows.append([job, *cells])
        parts.append(f"{table([f'corpus {corpus}', *(f'{size:,}' for size in sizes)], rows)}")
    return "\n\n".join(parts)


def fresh() -> str:
    """Compare outputs that are kept with outputs that are released, and count the pages that each had to be given."""
    record = limits()
    rows = []
    for corpus in CORPORA:
        whole = record.whole(corpus)
        for job in ("memcpy", "decode", "encode"):
            side = job if job == "memcpy" else OURS
            cells = []
            for batch in (BATCH, whole):
                for buffers in ("released", "fresh"):
                    ns = digits(record.ns(job, corpus, batch, buffers, side))
                    cells.append(f"{ns} ({record.faults(job, corpus, batch, buffers, side):,.0f})")
            rows.append([f"{job} {corpus}", *cells, digits(record.against_copies(job, corpus)) if side == OURS else ""])
    head = [
        f"{BATCH:,} rows, released",
        "the same, kept",
        "a million rows, released",
        "the same, kept",
        "kept, x memcpy",
    ]
    return table(["", *head], rows)


def java() -> str:
    """Compare with Kafka's Java."""
    record = limits()
    rows = []
    for job in ("decode", "encode", "select"):
        for corpus in ("A", "B"):
            for batch in JAVA_BATCHES:
                ours, theirs = record.ns(job, corpus, batch), record.ns(job, corpus, batch, "garbage", "Kafka's Java")
                cells = [f"{batch:,}", digits(ours), digits(theirs), digits(record.java(job, corpus, batch))]
                rows.append([f"{job} {corpus}", *cells])
    return table(["", "rows", "`letterhead`", "Kafka's Java", "x"], rows)


def python() -> str:
    """Compare with plain Python, both called from Python."""
    record = limits()
    rows = []
    for job in GROWING:
        for corpus in CORPORA:
            (plain,) = (key[3] for key in record.rows if key[0] == PLAIN and key[1:3] == (corpus, job))
            times = [
                record.ns(job, corpus, BATCH),
                record.ns(job, corpus, BATCH, side=PYTHON),
                record.ns(job, corpus, plain, side=PLAIN),
            ]
            rows.append([f"{job} {corpus}", *map(digits, times), digits(record.plain(job, corpus))])
    return table(["", "the core in Rust", "`letterhead`, from Python", "plain Python", "x"], rows)


def curves() -> str:
    """Say how straight the lines are."""
    rows = []
    for curve, (_, unit) in AXES.items():
        for job in GROWING:
            line = limits().line(curve, job)
            off = f"{line.deviation:+.0%} at {line.at:,}"
            rows.append([job, f"{digits(line.slope)} ns {unit}" if line.slope >= 0.001 else f"nothing {unit}", off])
    return table(["", "cost", "largest deviation from a straight line"], rows, left=2)


# What other records say.


def rows_of(job: str, source: str) -> dict[str, float]:
    """Give the time of each side in a job; nothing where it was not measured."""
    found = other(run.ROWS.name)
    rows = [] if found is None else found["rows"]
    return {row["side"]: row["ns"] for row in rows if (row["job"], row["source"]) == (job, source)}


def crates() -> str:
    """Compare with Iggy's own crates, once as anyone builds them and once with our allocator."""
    rows = []
    for job in ("decode", "encode", "select 3", "validate"):
        for corpus in ("iggy", "iggy-2023", typed.SHUFFLED):
            sides = rows_of(job, typed.source(corpus))
            theirs = {side.endswith("mimalloc"): ns for side, ns in sides.items() if side.startswith("crate")}
            if OURS not in sides or not theirs:
                continue
            aimed = CRATES.get((job, corpus))
            cells = [digits(sides[OURS])]
            for mimalloc in (False, True):
                cells += [digits(theirs[mimalloc]), digits(theirs[mimalloc] / sides[OURS])]
            rows.append([f"{job}, {corpus}", *cells, goal_of(aimed, theirs[False] / sides[OURS])])
    if not rows:
        return "Not measured: `make bench-iggy bench-python bench-table`."
    head = ["", "`letterhead`", "the crate", "x", "the crate with mimalloc", "x", "goal, of the crate as it comes"]
    return table(head, rows)


def message() -> str:
    """Compare what one message costs, called from Python."""
    rows = []
    for job, aimed_here in ONE_MESSAGE.items():
        sides = rows_of(job, "store blocks (kafka), one call each")
        plain = {side: ns for side, ns in sides.items() if side.startswith("plain Python")}
        if not plain:
            continue
        fastest = min(plain, key=plain.__getitem__)
        for side in sorted(sides.keys() - plain.keys(), key=sides.__getitem__):
            times = plain[fastest] / sides[side]
            aimed = aimed_here if side.startswith(OURS) and "reference" not in side else None
            rows.append([job, side, digits(sides[side]), digits(plain[fastest]), digits(times), goal_of(aimed, times)])
    if not rows:
        return "Not measured: `make bench-python bench-table`."
    head = ["", "side", "ns a header", "the fastest plain Python", "x", "goal"]
    return table(head, rows, left=2)


def goal_of(aimed: float | None, times: float) -> str:
    """Give a goal, and say whether it is reached."""
    if aimed is None:
        return ""
    return f"≥\N{NO-BREAK SPACE}{aimed:g}: {marked(goal.verdict(times, aimed, at_least=True))}"


def marked(verdict: str) -> str:
    """Have what is missed seen."""
    return f"**{verdict}**" if verdict == "missed" else verdict


def direct() -> str:
    """Compare readers of topics and segments: seconds, and the ratios of rounds."""
    found = other("direct.json")
    if found is None:
        return "Not measured: `make bench-direct`."
    jobs: dict[str, dict[str, dict[str, Any]]] = {}
    for result in found["results"]:
        jobs.setdefault(result["job"], {})[result["side"]] = result
    rows = []
    for job, sides in jobs.items():
        ours = {name: sides[side]["seconds"] for side, name in DIRECT.items() if side in sides}
        for side in sides.keys() - DIRECT.keys():
            theirs = sides[side]["seconds"]
            ratios = {name: times(theirs, taken) for name, taken in ours.items()}
            rows.append([
                job, side, *map(seconds, ours.values()), seconds(theirs), *map(spread, ratios.values()),
                aimed_at(run.direct.BARS.get((job, side)), ratios),
            ])  # fmt: skip
    names = DIRECT.values()
    head = ["job", "the other side", *(f"our {name}" for name in names), "other", *(f"x {name}" for name in names), ""]
    return (
        f"{found['rows']:,} records, {found['stored'] / 1e6:.0f} MB as stored.\n\n{table(head, sorted(rows), left=2)}"
    )


def seconds(taken: Sequence[float]) -> str:
    """Give the median."""
    return f"{statistics.median(taken):.2f} s"


def times(theirs: Sequence[float], ours: Sequence[float]) -> list[float]:
    """Give the ratios within each round."""
    return [one / another for one, another in zip(theirs, ours, strict=False)]


def spread(ratios: Sequence[float]) -> str:
    """Give the median, the least and the greatest."""
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f}–{max(ratios):.1f})"


def aimed_at(goal: float | None, ratios: dict[str, list[float]]) -> str:
    """Say of each of ours whether the other side takes as many times as long as we aim at."""
    if goal is None:
        return ""
    verdicts = (
        f"{'reached' if statistics.median(found) >= goal else '**missed**'} with {name}"
        for name, found in ratios.items()
    )
    return f"aimed at {goal:g}: {', '.join(verdicts)}"


def memory() -> str:
    """Give the memory that reading directly takes."""
    found = other("direct.json")
    if found is None:
        return "Not measured: `make bench-direct`."
    kinds: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for each in found["memory"]:
        kinds.setdefault((DIRECT[each["side"]], each["job"]), {})[each["rows"]] = each
    sizes = sorted({rows for taken in kinds.values() for rows in taken})
    head = ["", *(f"{rows:,}" for rows in sizes), *(f"own, {rows:,}" for rows in sizes)]
    rows = [
        [f"{side}, {job}", *(f"{taken[size][part]:.0f}" for part in ("peak", "own") for size in sizes)]
        for (side, job), taken in sorted(kinds.items(), reverse=True)
    ]
    return table(head, rows)


def spark() -> str:
    """Give what headers cost in Spark, and what was aimed at there."""
    found = other("spark.json")
    if found is None:
        return "Not measured: `make bench-spark`."
    load = ", ".join(f"{each[0]:.1f}" for each in found["load"])
    rows = [
        [f"{row.job}, {row.source}", row.side, digits(row.ns), "" if row.ratio is None else digits(row.ratio)]
        for row in run.read_spark(run.RECORD / "spark.json")
    ]
    goals = []
    for bar in found["bars"]:
        ratio = pairs.Ratio(*bar["found"])
        verdict = marked(goal.verdict(ratio.median, bar["at_most"], at_least=False))
        interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
        goals.append([bar["what"], f"≤\N{NO-BREAK SPACE}{bar['at_most']:g}", f"{ratio.median:.2f}", interval, verdict])
    parts = [
        f"{found['rows']:,} rows, batches of {found['batch']:,}; load {load}.",
        table(["job", "side", "ns a header", "x"], rows, left=2),
        table(["ratio", "goal", "median of pairs", "interval of 95 %", ""], goals),
    ]
    return "\n\n".join(parts)


def queries() -> str:
    """Give what people's own queries take, as multiples of ours."""
    found = other("from-your-query.json")
    if found is None:
        return "Not measured: `make bench-spark`."
    rows = [[result["title"], f"{result['differ']:,}", digits(result["ratio"])] for result in found["results"]]
    return table(["their query", "rows it gets wrong, of 10,000", "x"], rows)


SECTIONS: dict[str, Callable[[], str]] = {
    "losses": losses,
    "bars": bars,
    "machine": machine,
    "corpora": corpora,
    "batches": batches,
    "fresh": fresh,
    "java": java,
    "python": python,
    "curves": curves,
    "crates": crates,
    "message": message,
    "direct": direct,
    "memory": memory,
    "spark": spark,
    "queries": queries,
}


def drawn_plots() -> dict[str, str]:
    """Draw every plot, by the name of its file."""
    record = limits()
    made = {
        "memcpy.svg": plots.lines(
            "Time as a multiple of memcpy of the same bytes",
            "rows a batch",
            "x memcpy",
            [
                plots.Series(
                    f"{job} {corpus}",
                    [(size, record.to_memcpy(job, corpus, size)) for size in record.batches(corpus)],
                    colour,
                    dash,
                )
                for job, dash in zip(("decode", "encode"), plots.DASHES, strict=True)
                for corpus, colour in zip(CORPORA, plots.COLOURS, strict=False)
            ],
        ),
        "java.svg": ratio_bars(
            "Kafka's Java: its time as a multiple of ours",
            [
                (f"{job} {corpus}, {batch:,} rows", record.java(job, corpus, batch), colour)
                for job, colour in zip(("decode", "encode", "select"), plots.COLOURS, strict=False)
                for corpus in ("A", "B")
                for batch in JAVA_BATCHES
            ],
        ),
        "python.svg": ratio_bars(
            "Plain Python: its time as a multiple of ours",
            [
                (f"{job} {corpus}", record.plain(job, corpus), colour)
                for job, colour in zip(GROWING, plots.COLOURS, strict=True)
                for corpus in CORPORA
            ],
        ),
    }
    for curve, (across, _) in AXES.items():
        # Of all rows the time of one is drawn, which a straight line leaves where it is; logarithms would hide a bend.
        level = curve == "rows"
        series = []
        for job, colour in zip(GROWING, plots.COLOURS, strict=True):
            points = record.curve(curve, job)
            if level:
                series.append(plots.Series(job, [(rows, ns / rows) for rows, ns in points], colour))
            else:
                series.append(plots.Series(job, points, colour, fit=record.line(curve, job)))
        up = {"rows": "ns a row", "headers": "ns a row", "value bytes": "ns a header"}[curve]
        name = f"{curve.replace(' ', '-')}.svg"
        made[name] = plots.lines(f"Cost as {curve} grow", across, up, series, log_up=not level)
    return made


def ratio_bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Draw ratios, with a line where both sides take the same time."""
    return plots.bars(title, "times our time", [(name, f"{digits(x)} x", x, colour) for name, x, colour in rows])


if __name__ == "__main__":
    main()
