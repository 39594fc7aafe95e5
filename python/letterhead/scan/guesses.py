"""Suggest types for the values of a key, the most likely first, with a confidence and the evidence.

The bytes of a header do not identify their type. Types are ranked by how well they explain a sample of the distinct
values (:mod:`letterhead.scan.costs`); the evidence counts all values. Types that explain the values equally well are tied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

from letterhead.scan.costs import cost
from letterhead.scan.readings import CANDIDATE_TYPES, SHAPES, Tally
from letterhead.scan.statistics import KeyStatistics
from letterhead.types import is_text_suffix
from letterhead.values import VALUE_TYPES

Confidence: TypeAlias = Literal["stated", "mixed", "strong", "likely", "weak", "tie", "possible", "unlikely"]

CONFIDENCES: dict[Confidence, str] = {
    "stated": "the format has types, and the values have this one",
    "mixed": "the values have several encodings, which the type names: the first that reads a value counts",
    "strong": "other types explain the values far worse",
    "likely": "other types explain them worse, or a narrower type is assumed where a wider one fits too",
    "weak": "there is little evidence against the others, or there are few distinct values",
    "tie": "the bytes do not distinguish it from the others that are tied: ask the producer",
    "possible": "it reads the values, and explains them worse than the first one",
    "unlikely": "it reads the values, and explains them far worse than the first one",
}
"""Meaning of each confidence."""

# Differences in bits between the best type and the next; a difference of n bits means odds of 2^n.
_TIE, _WEAK, _FAR = 3.0, 10.0, 32.0
# Maximum share of values that a type may fail to read; these values are assumed to be damaged.
_STRAYS = 0.05
# Minimum number of distinct values; with fewer, a type may fit by chance.
_FEW = 3

_TABLE = {reading.type: (index, reading.width) for index, reading in enumerate(CANDIDATE_TYPES)}


class Guess(NamedTuple):
    """Suggested type for the values of a key.

    Attributes
    ----------
    type : str
        Name of the type in ``select``.
    confidence : str
        One of :data:`CONFIDENCES`.
    fits : int
        Number of values that can be read as this type.
    values : int
        Number of non-null values.
    bits : float or None
        Number of bits needed to encode the sampled distinct values as this type; fewer are better. None if not computed.
    evidence : str
        Counts and ranges over all values.
    """

    type: str
    confidence: Confidence
    fits: int
    values: int
    bits: float | None
    evidence: str


def guesses_of(statistics: KeyStatistics) -> list[Guess]:
    """Return a ranked list of the types that can read most of the values of a key."""
    total = statistics.headers - statistics.nulls
    if statistics.types:
        return _list_stated_types(statistics, total)
    if not statistics.values:
        seen = f"{_share_of(total, total, 'value')} empty" if total else "every value is null"
        return [
            Guess(type, "tie", total, total, None, f"{seen}: there is no evidence") for type in ("string", "binary")
        ]
    return _rank_types(statistics, total)


def _list_stated_types(statistics: KeyStatistics, total: int) -> list[Guess]:
    """Return suggestions for the types stored in the messages."""
    types = sorted(statistics.types.items(), key=lambda type_and_count: (-type_and_count[1], type_and_count[0]))
    widest = _type_that_holds(statistics.types) if len(types) > 1 else None
    if widest is not None:
        stated = ", ".join(f"{type} by {count:,}" for type, count in types)
        evidence = f"reads {_share_of(total, total, 'value', verb=False)}, which state {stated}"
        return [Guess(widest, "stated", total, total, None, evidence)]
    guesses: list[Guess] = []
    for type, count in types:
        if guesses and _type_that_holds([guesses[0].type, type]) == guesses[0].type:
            guesses[0] = guesses[0]._replace(fits=guesses[0].fits + count)
            continue
        evidence = f"stated by {_share_of(count, total, 'value', verb=False)}"
        tally = statistics.readings.get(type)
        if len(types) == 1 and tally is not None and tally.low is not None:
            evidence += f"; {_range_text(type, tally)}"
        guesses.append(Guess(type if type in VALUE_TYPES else "binary", "stated", count, total, None, evidence))
    return guesses


def _type_that_holds(types: Iterable[str]) -> str | None:
    """Return the type that represents all values of several number types exactly, or None."""
    widths: dict[str, int] = {"int": 0, "uint": 0, "float": 0}
    for type in types:
        kind = type.rstrip("0123456789")
        if kind not in widths or kind == type:
            return None
        widths[kind] = max(widths[kind], int(type[len(kind) :]))
    signed, unsigned, fraction = widths.values()
    if fraction:
        return "float64" if max(signed, unsigned) <= _EXACT_IN_FLOAT64 else None
    if not unsigned or not signed:
        return f"int{signed}" if signed else f"uint{unsigned}"
    return f"int{max(signed, 2 * unsigned)}" if max(signed, 2 * unsigned) <= _WIDEST else None


_EXACT_IN_FLOAT64, _WIDEST = 32, 64
"""Maximum width in bits of integer types that a double represents exactly, and of integer columns."""


def _rank_types(statistics: KeyStatistics, total: int) -> list[Guess]:
    values = [value for value in statistics.sample.commonest() if value.size]
    costs: dict[str, float] = {}
    for type in _rivals(statistics):
        strays = 1 - statistics.readings[type].fits / total <= _STRAYS
        costs[type] = cost(type, values, strays=strays)
    order = sorted(costs, key=lambda type: (round(costs[type], 1), _TABLE[type][0]))
    # A time is also a number, so the same number is not a rival. The confidence in a time is at most "likely".
    best = costs[order[0]]
    rivals = [type for type in order[1:] if not _read_alike(type, order[0])]
    margin = costs[rivals[0]] - best if rivals else float("inf")
    guesses = []
    for index, type in enumerate(order):
        if index == 0:
            confidence = _confidence_of_first(type, margin, len(values))
        else:
            behind = costs[type] - best
            near = behind <= _FAR or _read_alike(type, order[0])
            confidence = "tie" if behind <= _TIE else "possible" if near else "unlikely"
        guess = _guess(type, confidence, costs[type], statistics, total)
        if index == 0:
            guess = guess._replace(evidence="; ".join([guess.evidence, *_confusable_values(type, statistics)]))
        guesses.append(guess)
        if type == "string":
            guesses += [_guess(text_type, tied, None, statistics, total) for text_type, tied in _text_types(statistics)]
    # Sort tied types first.
    guesses.sort(key=lambda guess: guess.confidence in ("possible", "unlikely"))
    mixed = _find_mixed_types(statistics, total)
    if mixed:
        others = [
            guess if guess.confidence == "unlikely" else guess._replace(confidence="possible") for guess in guesses
        ]
        return [*mixed, *others]
    if guesses[0].type == "string" and len(guesses) > 1 and guesses[1].confidence == "tie":
        guesses[0] = guesses[0]._replace(confidence="tie")
    return guesses


def _find_mixed_types(statistics: KeyStatistics, total: int) -> list[Guess]:
    """Return the suggestion for values of which some are digits and others bytes."""
    mixed = {
        type: tally
        for type, tally in statistics.readings.items()
        if " | " in type and tally.fits >= (1 - _STRAYS) * total and _STRAYS <= tally.binary / tally.fits <= 1 - _STRAYS
    }
    if not mixed:
        return []
    # Choose the byte order with the smaller numbers: in the wrong order, numbers are large.
    type = min(mixed, key=lambda type: max(abs(mixed[type].low or 0), abs(mixed[type].high or 0)))
    tally = mixed[type]
    digits = _share_of(tally.fits - tally.binary, total, "value")
    evidence = f"{digits} digits, and {tally.binary:,} bytes of a number; {_range_text(type, tally)}"
    return [Guess(type, "mixed", tally.fits, total, None, evidence)]


def _rivals(statistics: KeyStatistics) -> Iterator[str]:
    """Yield the types that can read most of the values; unsigned types only if they read other numbers than signed types."""
    half = (statistics.headers - statistics.nulls) / 2
    for type, tally in statistics.readings.items():
        name, _, suffix = type.partition(":")
        if type not in _TABLE or is_text_suffix(suffix) or tally.fits < half:
            continue
        if name.startswith("uint"):
            signed = statistics.readings.get(type[1:])
            if signed is not None and signed.unusual <= _STRAYS * signed.fits:
                continue
        if name.startswith("timestamp") and tally.unusual > _STRAYS * tally.fits:
            continue
        yield type


def _text_types(statistics: KeyStatistics) -> Iterator[tuple[str, Confidence]]:
    """Yield the types that text can be parsed as; all rank below text, which is lossless.

    Integers rank lower if values have a leading 0, which parsing would lose.
    """
    fitting = {
        type: tally
        for type, tally in statistics.readings.items()
        if type in _TABLE and is_text_suffix(type.partition(":")[2]) and tally.fits >= (1 - _STRAYS) * statistics.values
    }
    for type, tally in fitting.items():
        if type.startswith(("timestamp", "date")) and tally.unusual > _STRAYS * tally.fits:
            continue
        if type == "float64:text" and "int64:text" in fitting:
            continue
        yield type, "possible" if type == "int64:text" and tally.unusual else "tie"


def _confidence_of_first(type: str, margin: float, distinct: int) -> Confidence:
    if margin <= _TIE:
        return "tie"
    if margin <= _WEAK:
        return "weak"
    cautious = type.startswith("timestamp_ms") or (distinct < _FEW and type not in ("string", "binary"))
    return "likely" if cautious or margin <= _FAR else "strong"


def _read_alike(left: str, right: str) -> bool:
    """Return whether two types read the same numbers from the same bytes."""
    alike = {type.replace("timestamp_ms", "int64") for type in (left, right)}
    return len(alike) == 1


def _guess(type: str, confidence: Confidence, bits: float | None, statistics: KeyStatistics, total: int) -> Guess:
    tally = statistics.readings[type]
    return Guess(type, confidence, tally.fits, total, bits, _evidence(type, tally, statistics, total))


def _confusable_values(type: str, statistics: KeyStatistics) -> Iterator[str]:
    """Yield the values read as easily confused types, and the number of distinct values if it is small."""
    name, _, order = type.partition(":")
    if name in _CONFUSED:
        for rival in (_CONFUSED[name] + (f":{order}" if order else ""), name + ("" if order else ":le")):
            tally = statistics.readings.get(rival)
            if tally is not None:
                yield from _number_evidence(rival, tally)
    if statistics.distinct <= _FEW:
        yield f"only {statistics.distinct} distinct"


_CONFUSED = {"int32": "float32", "int64": "float64", "float32": "int32", "float64": "int64", "timestamp_ms": "float64"}


def _evidence(type: str, tally: Tally, statistics: KeyStatistics, total: int) -> str:
    name, _, suffix = type.partition(":")
    sizes = statistics.sizes
    width = _TABLE[type][1]
    if type == "binary":
        span = f"{sizes.low:,}" if sizes.low == sizes.high else f"{sizes.low:,} to {sizes.high:,}"
        unit = "byte" if sizes.high == 1 else "bytes"
        seen = [f"reads any bytes: values of {span} {unit}", *_shape_evidence("binary", statistics, total)]
    elif type == "string":
        seen = [f"{_share_of(tally.fits, total, 'value')} UTF-8"]
        if tally.unusual:
            seen.append(f"{_share_of(tally.unusual, tally.fits, verb=False)} with unprintable characters")
        seen += _shape_evidence("string", statistics, total)
    elif is_text_suffix(suffix):
        noun = {"int64": "whole numbers", "float64": "numbers", "bool": "true or false", "uuid": "UUIDs",
                "date": "dates", "timestamp": "times" if suffix == "iso" else f"{suffix} since 1970"}[name]  # fmt: skip
        seen = [f"{_share_of(tally.fits, total, 'value')} {noun} as text"]
        if tally.low is not None:
            seen.append(_range_text(name, tally))
        if tally.unusual and name == "int64":
            seen.append(f"{tally.unusual:,} with a leading 0, as in identifiers")
        seen.append("a string keeps them unchanged")
    elif name == "bool":
        seen = [f"{_share_of(tally.fits, total, 'value')} the byte 00 or 01"]
    else:
        seen = [f"{_share_of(sizes.counts.get(width or 0, 0), total, 'value')} {width} byte{'' if width == 1 else 's'}"]
        seen += _number_evidence(type, tally)
    if statistics.empty and width is not None:
        seen.append(f"{statistics.empty:,} empty, which it cannot read")
    return "; ".join(seen)


def _number_evidence(type: str, tally: Tally) -> list[str]:
    name = type.partition(":")[0]
    if name == "uuid":
        how = "no more than by chance" if tally.unusual > tally.fits / 2 else "by chance it would be 1 in 8"
        sound = tally.fits - tally.unusual
        return [f"{_share_of(sound, tally.fits, verb=False)} with the version and variant of RFC 9562, {how}"]
    if name == "char":
        return ["each a UTF-16 unit"]
    if name.startswith("float") and tally.unusual:
        limit = "1e±30" if name == "float64" else "1e±20"
        return [f"as {type} {_share_of(tally.unusual, tally.fits)} subnormal, NaN, or beyond {limit}"]
    return [f"as {type} {_range_text(name, tally)}"]


def _range_text(type: str, tally: Tally) -> str:
    low, high = tally.low, tally.high
    if low is None or high is None:
        return "no number"
    if type.startswith(("timestamp", "date")):
        return f"{date_text(int(low))} to {date_text(int(high))}"
    numbers = [f"{number:,}" if isinstance(number, int) else f"{number:.6g}" for number in (low, high)]
    return f"always {numbers[0]}" if low == high else f"{numbers[0]} to {numbers[1]}"


def date_text(time: int) -> str:
    """Format milliseconds since 1970 as a date, or as a number if it is outside the years 1 to 9999."""
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return f"{time:,} ms"


def _shape_evidence(type: str, statistics: KeyStatistics, total: int) -> list[str]:
    fits_by_shape = {shape: statistics.shapes.get(shape, Tally()).fits for shape in SHAPES[type]}
    return [
        f"{_share_of(fits, total, verb=False)} with the shape of {name}"
        for name, fits in fits_by_shape.items()
        if fits > total / 2
    ]


def _share_of(count: int, total: int, noun: str = "", *, verb: bool = True) -> str:
    """Return a count of values as text, as in `all 9,700 values are`."""
    is_are = (" is" if count == 1 else " are") if verb else ""
    if count == total:
        if total == 1:
            return f"the one{f' {noun}' if noun else ''}{is_are}"
        return f"all {total:,}{f' {noun}s' if noun else ''}{is_are}"
    return f"{count:,} of {total:,}{f' {noun}s' if noun else ''}{is_are}"
