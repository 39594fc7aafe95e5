"""Write the figures of docs/benchmarks.md, docs/benchmarks/ and README.md, and the plots, from `benches/record`.

The text between `<!-- record: NAME -->` and `<!-- end -->` in a page is written by the function of that name, so no figure
of a table is typed by hand.

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

from benches import goal, run
from benches.direct.opponents import TOPIC, fastest_other
from benches.limits import goals, plots, summary
from benches.limits.report import BATCH, JAVA_BATCHES, OURS, PLAIN, PYTHON, WIDE, Bar, Record
from benches.machine import load_text
from benches.spark import pairs, sides

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "benchmarks.md",
    *sorted((DOCS / "benchmarks").glob("*.md")),
    DOCS / "how-to" / "restore-a-store.md",
)
PLOTS = DOCS / "plots"
WORDS = {
    "store values (streams-timestamped)": "values of a state store",
    "kinds guessed": "types guessed",
    "orders (list column)": "orders (list column, by Arrow)",  # before expressions of Spark read lists
}
"""How a page spells what older records call otherwise."""

SECTION = re.compile(r"(<!-- record: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

JOBS = ("decode", "encode", "select", "select from lists", "validate", "convert")
GROWING = ("decode", "encode", "select", "validate")
CORPORA = ("A", "B", "C")
AXES = {
    "rows": ("rows in all, in batches of 64,000", "a row"),
    "headers": ("headers a row", "a header"),
    "value bytes": ("bytes a value", "a byte of a value"),
}


def main() -> None:
    """Write the figures of all pages, and the plots."""
    for page in PAGES:
        page.write_text(filled(page.read_text()))
    PLOTS.mkdir(exist_ok=True)
    for name, drawn in drawn_plots().items():
        (PLOTS / name).write_text(plots.themed(drawn, name.removesuffix(".svg")))
    print(f"wrote {', '.join(str(page.relative_to(ROOT)) for page in PAGES)} and {PLOTS.relative_to(ROOT)}/")


def filled(page: str) -> str:
    """Return the page with each of its sections written from the records."""
    return SECTION.sub(lambda match: f"{match[1]}\n{spelled(SECTIONS[match['name']]())}\n\n{match[3]}", page)


def spelled(text: str) -> str:
    """Return a section in the words of the documentation."""
    for recorded, word in WORDS.items():
        text = text.replace(recorded, word)
    return text


@cache
def limits() -> Record:
    """Return the record of the limits."""
    return Record.read()


def other(name: str) -> Any:
    """Return another record; None where it was not made."""
    path = run.RECORD / name
    return json.loads(path.read_text()) if path.exists() else None


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Write a Markdown table; columns after the first `left` are numbers."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def digits(value: float) -> str:
    """Write a time or a ratio with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


# The page that begins.


def matters() -> str:
    """Return the table of what matters to a user."""
    head = ["job", "compared with", "letterhead is", "seconds for a million", "condition", "repeat"]
    rule = ["---", "---", "---", "---:", "---", "---"]
    lines = [
        [
            line.job,
            line.side,
            f"**{summary.speed(line.ratio)}**",
            f"{line.seconds:.2g}",
            line.condition,
            f"`{line.part}`",
        ]
        for line in compared()
    ]
    meanings = [f"* {name}: {meaning}" for name, meaning in summary.conditions(other).items()]
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in [head, rule, *lines]] + ["", *meanings])


def compared() -> list[summary.Comparison]:
    """Return the comparisons that matter to a user."""
    return list(summary.matters(limits(), kept_rows(), other))


def readme() -> str:
    """Return the lines of that table that the README has."""
    rows = [
        [line.job, line.side, f"**{summary.speed(line.ratio)}**"]
        for line in compared()
        if (line.job, line.side) in summary.README
    ]
    head, rule = ["job", "compared with", "letterhead is"], ["---", "---", "---"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def headline() -> str:
    """Return the sentence of the first page: one number and its condition."""
    [line] = [line for line in compared() if (line.job, line.side) == summary.HEADLINE]
    return (
        f"Three headers of a list are read **{summary.speed(line.ratio)}** than by a Python UDF in Spark "
        "([CPU time, rows discarded](benchmarks.md))."
    )


def faster() -> str:
    """Return the table of sides that are faster than ours."""
    return table(["job", "faster side", "letterhead is"], summary.faster(limits(), kept_rows(), other), left=3)


# One core.


def machine() -> str:
    """Describe the machine, the date and the versions of the measurement."""
    result, on = limits().document, limits().document["machine"]
    (features,) = {" ".join(row["features"]) for row in result["results"] if "features" in row}
    return table(
        ["", ""],
        [
            ["processor", f"{on['processor']}, {on['cores']} cores, of which one was used"],
            ["features found at run time", features or "none"],
            ["built for", built(on)],
            ["system", f"{on['system']}, transparent huge pages: {on['huge_pages']}"],
            ["versions", f"{on['rust']}; Python {on['python']}; {on['java']}; Kafka {on['kafka']}"],
            ["allocator", f"{on['allocator']}, as in the wheel"],
            ["sources", sources(on)],
            ["rounds of a figure", rounds_of(result["results"])],
            ["taken", f"{result['taken']}, in {result['minutes']:.0f} minutes"],
            ["load at the start of each turn", ", ".join(map(str, result["load"]))],
        ],
        left=2,
    )


def sources(on: dict[str, Any]) -> str:
    """Describe the compiled code."""
    return f"`{on['commit']}`" + (", with changes that were not committed" if on["changed"] else "")


def rounds_of(results: Sequence[dict[str, Any]]) -> str:
    """Describe how often each job was timed."""
    least, most = (choose(len(row["ns"]) for row in results) for choose in (min, max))
    return f"{least}" if least == most else f"{least} to {most}"


def built(on: dict[str, Any]) -> str:
    """Describe the processors that the core was compiled for."""
    portable = "any processor of its architecture, as in the wheel"
    if "wide" not in on:
        return f"{portable}; not a second time for AVX-512"
    if on["wide"] is None:
        return f"{portable}; not a second time for AVX-512, which this one does not have"
    return f"{portable}; beside Java a second time for AVX-512 (`{on['wide']}`)"


def corpora() -> str:
    """Describe the corpora."""
    names = ("rows", "bytes", "headers", "key_bytes", "value_bytes", "nulls")
    kept = limits().document["corpora"]
    return table(
        ["corpus", "rows", "bytes", "headers", "bytes of keys", "bytes of values", "null values"],
        [[name, *(f"{kept[name][part]:,}" for part in names)] for name in kept],
    )


def sign(bar: Bar) -> str:
    """Write what is aimed at."""
    return f"{'≥' if bar.at_least else '≤'}\N{NO-BREAK SPACE}{bar.goal:.3g}"


def bars() -> str:
    """Return every goal of one core, and whether it is reached."""
    lines = [[bar.job, sign(bar), digits(bar.figure), marked(bar.verdict)] for bar in limits().bars()]
    return table(["ratio", "goal", "x", ""], lines)


def batches() -> str:
    """Return every job on every corpus in every size of batch."""
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
    """Compare with Kafka's Java, and where it was measured, with ours compiled for AVX-512."""
    record = limits()
    rows = []
    to_portable = []
    for job in ("decode", "encode", "select"):
        for corpus in ("A", "B"):
            for batch in JAVA_BATCHES:
                ours, theirs = record.ns(job, corpus, batch), record.ns(job, corpus, batch, "garbage", "Kafka's Java")
                cells = [f"{batch:,}", digits(ours), digits(theirs), digits(record.java(job, corpus, batch))]
                if (WIDE, corpus, job, batch, "released") in record.rows:
                    wide = record.ns(job, corpus, batch, side=WIDE)
                    to_portable.append(wide / ours)
                    cells += [digits(wide), digits(record.java(job, corpus, batch, WIDE))]
                elif record.has_wide:
                    cells += ["", ""]
                rows.append([f"{job} {corpus}", *cells])
    head = ["", "rows", "`letterhead`", "Kafka's Java", "x"]
    if not to_portable:
        return table(head, rows)
    least, most = (f"{times:.2f}" for times in (min(to_portable), max(to_portable)))
    output = f"Compiled for AVX-512, the same sources take {least} to {most} times as long as built for any processor."
    return f"{table([*head, 'compiled for AVX-512', 'x'], rows)}\n\n{output}"


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
    """Describe how linear the times are."""
    rows = []
    for curve, (_, unit) in AXES.items():
        for job in GROWING:
            line = limits().line(curve, job)
            off = f"{line.deviation:+.0%} at {line.at:,}"
            rows.append([job, f"{digits(line.slope)} ns {unit}" if line.slope >= 0.001 else f"nothing {unit}", off])
    return table(["", "cost", "largest deviation from a straight line"], rows, left=2)


# What other records say.


def kept_rows() -> list[run.Row]:
    """Return the rows of the table that are kept; none where they were not measured."""
    record = other(run.ROWS.name)
    return [] if record is None else [run.Row(**row) for row in record["rows"]]


def head_of_rows() -> str:
    """Describe when and on which machine those were measured."""
    record = other(run.ROWS.name)
    on = record["machine"]
    ran = f"{on['processor']}, {on['cores']} cores, of which one was used; {on['system']}"
    return f"Taken {' and '.join(record['taken'])} on {ran}; Python {on['python']}; {on['rust']}; {on['java']}; sources {sources(on)}.\n\n"


def crates() -> str:
    """Compare with Iggy's own crates, once as anyone builds them and once with our allocator."""
    lines = []
    for (job, corpus), pair in goals.crates(kept_rows()).items():
        ours = next(comparison.ns / comparison.times for comparison in pair.values())
        cells = [digits(ours)]
        for mimalloc in (False, True):
            comparison = pair.get(mimalloc)
            cells += (
                ["", "", ""]
                if comparison is None
                else [digits(comparison.ns), digits(comparison.times), goal_of(comparison.bar)]
            )
        lines.append([f"{job}, {corpus}", *cells])
    if not lines:
        return "Not measured: `tools/bench iggy python table`."
    head = ["", "`letterhead`", "the crate", "x", "goal", "the crate with mimalloc", "x", "goal"]
    return head_of_rows() + table(head, lines)


def polls() -> str:
    """Compare readers of a topic of an Iggy server; ratios are medians of those within a round."""
    record = other("iggy-server.json")
    if record is None:
        return "Not measured: `tools/bench polls`, with a server in IGGY_SERVER."
    on = record["machine"]
    lines = []
    for side in record["wall_ns_per_message"]:
        cells = [f"{record[measure][side]:,}" for measure in ("wall_ns_per_message", "cpu_ns_per_message")]
        ratios = ["", "", ""]
        if side != "letterhead":
            wall, cpu = record["wall_ratio"][side], record["cpu_ratio"][side]
            least = record["goals"].get(side)
            bar = "" if least is None else f"≥ {least}: {marked(goal.verdict(wall, least, at_least=True))}"
            ratios = [digits(wall), digits(cpu), bar]
        lines.append([side, *cells, *ratios])
    ran = (
        f"{record['messages']:,} messages, {record['rounds']} rounds, taken {record['taken']} on {on['processor']}, "
        f"{on['cores']} cores, load {record['load']}; Python {on['python']}; sources {sources(on)}."
    )
    head = ["", "wall time, ns a message", "processor time of the reader", "x wall", "x processor", "goal"]
    return f"{ran}\n\n{table(head, lines)}"


def message() -> str:
    """Compare what one message costs, called from Python: to read it, and to write it."""
    reading = [
        [ours.job, ours.side, digits(ours.ns), digits(comparison.ns), digits(comparison.times), goal_of(comparison.bar)]
        for ours, comparison in goals.messages(kept_rows())
    ]
    if not reading:
        return "Not measured: `tools/bench python table`."
    head = ["", "side", "ns a header", "the fastest plain Python", "x", "goal"]
    return head_of_rows() + "\n\n".join([table(head, reading, left=2), sides_of(goals.ENCODE_ONE, "ns a header")])


def stores() -> str:
    """Compare a store that keeps headers with what is below it, and with Kafka Streams' own."""
    if not any(row.job in goals.STORE_JOBS for row in kept_rows()):
        return "Not measured: `tools/bench python jvm table`."
    return head_of_rows() + sides_of(goals.STORE_JOBS, "ns a row")


def sides_of(jobs: Sequence[str], unit: str) -> str:
    """Return every side of some jobs, ours first in each."""
    times = {(comparison.job, comparison.side): comparison for comparison in goals.compared(kept_rows(), jobs)}
    selected = (row for row in kept_rows() if row.job in jobs)
    lines = []
    for row in sorted(selected, key=lambda row: (jobs.index(row.job), row.source, row.side != OURS, row.ns)):
        work = f"{row.job}, {row.source}"
        comparison = times.get((work, row.side))
        cells = ["", ""] if comparison is None else [digits(comparison.times), goal_of(comparison.bar)]
        lines.append([work, row.side, digits(row.ns), *cells])
    for comparison in times.values():
        if comparison.job.startswith(tuple(f"{job} (" for job in jobs)):
            lines.append(
                [
                    comparison.job,
                    comparison.side,
                    digits(comparison.ns),
                    digits(comparison.times),
                    goal_of(comparison.bar),
                ]
            )
    return table(["", "side", unit, "x", "goal"], lines, left=2)


def goal_of(bar: Bar | None) -> str:
    """Return a goal, and say whether it is reached; one for the ratio the other way round has its figure with it."""
    if bar is None:
        return ""
    other_way = "" if bar.at_least else f"ours to it {digits(bar.figure)}, "
    return f"{other_way}{sign(bar)}: {marked(bar.verdict)}"


def marked(verdict: str) -> str:
    """Mark missed goals."""
    return f"**{verdict}**" if verdict == "missed" else verdict


def direct() -> str:
    """Compare readers of topics and segments: seconds, and the ratios of rounds."""
    record = other("direct.json")
    if record is None:
        return "Not measured: `tools/bench direct`."
    taken = {(result["job"], result["side"]): result["seconds"] for result in record["results"]}
    compared: dict[tuple[str, str], dict[str, list[float]]] = {}
    for job, side, name, ratios in goals.rounds(record):
        compared.setdefault((job, side), {})[name] = ratios
    lines = []
    for (job, side), ratios in sorted(compared.items()):
        times = [taken[job, ours] for ours in goals.DIRECT]
        least = run.direct.BARS.get((job, side))
        lines.append([
            job, side, *map(seconds, times), seconds(taken[job, side]), *map(spread, ratios.values()),
            aimed_at(least, ratios),
        ])  # fmt: skip
    names = goals.DIRECT.values()
    head = ["job", "the other side", *(f"our {name}" for name in names), "other", *(f"x {name}" for name in names), ""]
    return f"{record['rows']:,} records, {record['stored'] / 1e6:.0f} MB as stored.\n\n{table(head, lines, left=2)}"


def where() -> str:
    """Return the times and ratios of reading with a condition."""
    record = other("where.json")
    if record is None:
        return "Not measured: `tools/bench where`."
    lines = []
    for row in record["results"]:
        ns, least = statistics.median(row["seconds"]) / row["rows"] * 1e9, row["goal"]
        verdict = "" if least is None else marked(goal.verdict(row["ratio"], least, at_least=True))
        aimed = "" if least is None else f"≥\N{NO-BREAK SPACE}{least:g}"
        lines.append([row["job"], row["side"], digits(ns), digits(row["ratio"]), aimed, verdict])
    load = load_text(record["load"])
    head = ["records", "read", "ns a record", "x", "goal", ""]
    return f"Sources {sources(record['machine'])}; load {load}.\n\n{table(head, lines, left=2)}"


def opponents() -> str:
    """Return the times of other readers of a topic on one core."""
    record = other("opponents.json")
    if record is None:
        return "Not measured: `tools/bench opponents`."
    goals_of = {TOPIC: fastest_other(record["results"], TOPIC)}
    rows = []
    for row in record["results"]:
        first = min(statistics.median(result["seconds"]) for result in record["results"] if result["job"] == row["job"])
        least = record["goal"]
        rows.append([
            row["job"], row["side"], seconds(row["seconds"]), digits(row["ratio"]),
            "fastest" if statistics.median(row["seconds"]) == first else "",
            f"≥\N{NO-BREAK SPACE}{least:g}: {marked(goal.verdict(row['ratio'], least, at_least=True))}"
            if row == goals_of.get(row["job"]) else "",
        ])  # fmt: skip
    runs = [
        f"* {job}: {record['runs'][job]['rows']:,} rows, sources {sources(record['runs'][job]['machine'])}, "
        f"load {', '.join(f'{load[0]:.1f}' for load in record['runs'][job]['load'])}"
        for job in dict.fromkeys(row["job"] for row in record["results"])
    ]
    lines = table(["from", "reader", "time", "x", "", "goal"], rows, left=2)
    return "\n".join(runs) + f"\n\n{lines}"


def seconds(taken: Sequence[float]) -> str:
    """Return the median."""
    return f"{statistics.median(taken):.2f} s"


def spread(ratios: Sequence[float]) -> str:
    """Return the median, the least and the greatest."""
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f}–{max(ratios):.1f})"


def aimed_at(least: float | None, ratios: dict[str, list[float]]) -> str:
    """Return for each of our sides whether the other takes at least the targeted multiple of its time."""
    if least is None:
        return ""
    verdicts = (
        f"{name} {marked(goal.verdict(statistics.median(measured), least, at_least=True))}"
        for name, measured in ratios.items()
    )
    return f"≥\N{NO-BREAK SPACE}{least:g}: {'; '.join(verdicts)}"


def memory() -> str:
    """Return the memory that reading directly takes."""
    record = other("direct.json")
    if record is None:
        return "Not measured: `tools/bench direct`."
    series: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for usage in record["memory"]:
        series.setdefault((goals.DIRECT[usage["side"]], usage["job"]), {})[usage["rows"]] = usage
    sizes = sorted({rows for taken in series.values() for rows in taken})
    head = ["", *(f"{rows:,}" for rows in sizes), *(f"own, {rows:,}" for rows in sizes)]
    rows = [
        [f"{side}, {job}", *(f"{taken[size][part]:.0f}" for part in ("peak", "own") for size in sizes)]
        for (side, job), taken in sorted(series.items(), reverse=True)
    ]
    return table(head, rows)


def spark() -> str:
    """Return what headers cost in Spark, and what was aimed at there."""
    record = other("spark.json")
    if record is None:
        return "Not measured: `tools/bench spark`."
    load = load_text(record["load"])
    rows = [
        [f"{row.job}, {row.source}", row.side, digits(row.ns), "" if row.ratio is None else digits(row.ratio)]
        for row in run.read_spark(run.RECORD / "spark.json")
    ]
    aimed = []
    for bar in record["bars"]:
        ratio = pairs.Ratio(*bar["found"])
        verdict = marked(goal.verdict(ratio.median, bar["at_most"], at_least=False))
        interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
        aimed.append([bar["what"], f"≤\N{NO-BREAK SPACE}{bar['at_most']:g}", f"{ratio.median:.2f}", interval, verdict])
    parts = [
        f"{record['rows']:,} rows, batches of {record['batch']:,}; Spark {record['spark']}; load {load}.",
        table(["job", "side", "ns a header", "x"], rows, left=2),
        table(["ratio", "goal", "median of pairs", "interval of 95 %", ""], aimed),
    ]
    return "\n\n".join(parts)


def lists() -> str:
    """Return what selecting three headers of a list column costs."""
    record = other("spark-lists.json")
    if record is None:
        return "Not measured: `tools/bench spark`."
    load = load_text(record["load"])
    rows = [
        [
            summary.LIST_SIDES.get(result["side"], result["side"]),
            f"{result['rows']:,}",
            digits(summary.cpu_seconds(result)),
            digits(result["cpu_ratio"]),
            digits(result["ratio"]),
        ]
        for result in record["results"]
    ]
    parts = [
        f"Spark {record['spark']}; load {load}.",
        table(["side", "rows", "CPU seconds a million", "x", "x by the clock"], rows),
    ]
    return "\n\n".join(parts)


def engines() -> str:
    """Return the ways to run the jobs on Spark and Sail, as multiples of ours on Spark."""
    record = other("engines.json")
    if record is None:
        return "Not measured: `tools/bench engines`."
    part = record["engines"]
    rows = [
        [job_of(row), row["engine"], row["side"], nanoseconds(row), digits(row["ratio"])] for row in part["results"]
    ]
    bars = (Bar(job, aimed, figure, True) for job, aimed, figure in goals.of_engines(record))
    aims = [[bar.job, sign(bar), digits(bar.figure), marked(bar.verdict)] for bar in bars]
    parts = [
        f"{measured(part)[:-1]}; Sail {part['sail']}.",
        table(["job", "engine", "side", "ns a header", "x"], rows, left=3),
        table(["ratio", "goal", "x", ""], [*aims, *kernel_shares(part["results"])]),
    ]
    return "\n\n".join(parts)


def kernel_shares(results: Sequence[dict[str, Any]]) -> Iterable[list[str]]:
    """Return what part of the time on Sail the kernel takes."""
    on_sail = {(job_of(row), row["side"]): row["seconds"] for row in results if row["engine"] == "Sail"}
    for (job, side), seconds in on_sail.items():
        if side == OURS:
            rest = pairs.ratio(on_sail[job, sides.EMPTY], seconds).median
            yield [f"Kernel in the time on Sail: {job}", "", f"{1 - rest:.2f}", ""]


def columnar() -> str:
    """Return what an Arrow UDF takes that gets rows, and columns, as multiples of ours."""
    record = other("engines.json")
    if record is None or "columnar" not in record:
        return "Not measured: `tools/bench engines`."
    part = record["columnar"]
    ratios: dict[str, dict[str, float]] = {}
    for row in part["results"]:
        ratios.setdefault(job_of(row), {})[row["input"]] = row["ratio"]
    rows = [
        [job, *(digits(by_input[input_type]) for input_type in ("rows", "columns"))] for job, by_input in ratios.items()
    ]
    return f"{measured(part)}\n\n" + table(["`arrow_udf`, `mapInArrow` = 1", "gets rows", "gets columns"], rows)


def job_of(row: dict[str, Any]) -> str:
    """Name a job and its data on a page about Spark."""
    return f"{row['job']}, {row['source']}".replace(" in Spark", "")


def nanoseconds(row: dict[str, Any]) -> str:
    """Return the time of a header."""
    return digits(statistics.median(row["seconds"]) / row["headers"] * 1e9)


def measured(part: dict[str, Any]) -> str:
    """Describe a measurement of engines; older records have no sources."""
    load = load_text(part["load"])
    commit = f"; sources {sources(part['machine'])}" if "machine" in part else ""
    return f"{part['rows']:,} rows; cores: {part['cores']}; load {load}{commit}; Spark {part['spark']}."


def batch_sizes() -> str:
    """Return what other sizes of batches take, as multiples of 10,000 rows."""
    record = other("engines.json")
    if record is None:
        return "Not measured: `tools/bench engines`."
    results = record["sizes"]["results"]
    ratios: dict[tuple[str, str], dict[int, float]] = {}
    for row in results:
        ratios.setdefault((job_of(row), row["engine"]), {})[row["rows"]] = row["ratio"]
    sizes = sorted({row["rows"] for row in results})
    rows = [[job, engine, *(digits(by_size[size]) for size in sizes)] for (job, engine), by_size in ratios.items()]
    return table(["job", "engine", *(f"{size:,}" for size in sizes)], rows, left=2)


def queries() -> str:
    """Return what people's own queries take, as multiples of ours."""
    record = other("from-your-query.json")
    if record is None:
        return "Not measured: `tools/bench spark`."
    rows = [[result["title"], f"{result['differ']:,}", digits(result["ratio"])] for result in record["results"]]
    return table(["their query", "rows it gets wrong, of 10,000", "x"], rows)


def restore() -> str:
    """Return how fast a store is restored, where the time goes, and how much memory it takes."""
    record = other("restore.json")
    if record is None:
        return "Not measured: `tools/bench restore`."
    speeds = []
    for source, ratio in record["ratios"].items():
        speeds.append([source, f"{ratio['wall']:.1f} times faster", f"{ratio['cpu']:.1f} times less"])
    spent = {source: sum(seconds.values()) for source, seconds in record["parts"].items()}
    parts = [
        [part, *(f"{record['parts'][source][part] / spent[source]:.0%}" for source in spent)]
        for part in next(iter(record["parts"].values()))
    ]
    memory = " and ".join(f"{size / 2**20:,.0f} MiB for {count}" for count, size in record["memory"].items())
    return "\n\n".join(
        [
            table(["source", "letterhead is", "CPU time"], speeds),
            f"{record['records']:,} records, best of {len(next(iter(record['rounds'].values())))} rounds. "
            "Where our CPU time goes:",
            table(["part", *spent], parts),
            f"Memory grows by {memory} partitions of a Parquet file with the same records.",
        ]
    )


SECTIONS: dict[str, Callable[[], str]] = {
    "matters": matters,
    "readme": readme,
    "headline": headline,
    "faster": faster,
    "bars": bars,
    "machine": machine,
    "corpora": corpora,
    "batches": batches,
    "fresh": fresh,
    "java": java,
    "python": python,
    "curves": curves,
    "crates": crates,
    "polls": polls,
    "message": message,
    "stores": stores,
    "direct": direct,
    "opponents": opponents,
    "where": where,
    "memory": memory,
    "spark": spark,
    "lists": lists,
    "restore": restore,
    "engines": engines,
    "columnar": columnar,
    "batch-sizes": batch_sizes,
    "queries": queries,
}


def drawn_plots() -> dict[str, str]:
    """Draw every plot, by the name of its file."""
    record = limits()
    result = {
        "speed.svg": plots.speeds(
            [(line.job, line.ratio, summary.speed_beside(line), line.spread) for line in compared()]
        ),
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
        result[name] = plots.lines(f"Cost as {curve} grow", across, up, series, log_up=not level)
    return result


def ratio_bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Draw ratios, with a line where both sides take the same time."""
    return plots.bars(title, "times our time", [(name, f"{digits(x)} x", x, colour) for name, x, colour in rows])


if __name__ == "__main__":
    main()
