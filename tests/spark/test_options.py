"""The options of the transforms: those that Arrow has, documented alike, and handed on. No job runs."""

from __future__ import annotations

import inspect
import re

import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.spark.sources import options as sources

VERBS = {
    "decode": lhs.decode_headers,
    "select": lhs.select_headers,
    "encode": lhs.encode_headers,
    "convert": lhs.convert_headers,
    "messages": lhs.messages,
}

LIMITS = lh.Limits(headers=9)

DIFFERENT = {
    "column": "another thing is read",
    "columns": "of select: what is asked for; of messages: its fields",
    "into": "another thing is made",
    "format": "blocks and envelopes, or batches",
    "target": "one verb has it",
}
"""Parameters of one name that mean something else in another function, and why."""


def documented(function) -> dict[str, str]:
    """Give the parameters of a docstring with NumPy sections: their types and what is said of them."""
    doc = inspect.getdoc(function)
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n^[A-Z]\w+\n-+\n", doc, re.MULTILINE | re.DOTALL)[1]
    parts = re.split(r"^(\w+) : ", section, flags=re.MULTILINE)[1:]
    return {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("verb", VERBS)
def test_every_parameter_is_documented_in_order(verb):
    function = VERBS[verb]
    assert list(documented(function)) == list(inspect.signature(function).parameters)


def test_what_is_shared_is_said_in_the_same_words():
    texts = {verb: documented(function) for verb, function in VERBS.items()}
    shared = {name for parameters in texts.values() for name in parameters} - set(DIFFERENT)
    for name in shared:
        said = {verb: parameters[name] for verb, parameters in texts.items() if name in parameters}
        first = said.pop(next(iter(said)))
        for verb, text in said.items():
            if verb == "messages" and name == "errors":
                # A batch has one case more.
                assert text.startswith(first), name
            elif verb == "messages" and name == "lenient":
                assert text == documented(lha.messages)[name]
            else:
                assert text == first, (verb, name)


@pytest.mark.parametrize("verb", VERBS)
def test_the_options_are_those_of_arrow(verb):
    """With the same defaults, and said in the same words where they are not Spark's own."""
    of_arrow = inspect.signature(getattr(lha, verb)).parameters
    of_spark = inspect.signature(VERBS[verb]).parameters
    own = {"keep", "into", "fields"}
    assert set(of_spark) - own == set(of_arrow) - {"dialect"}
    for name in set(of_spark) - own - {"column"}:
        assert of_spark[name].default == of_arrow[name].default, name
    texts, arrows = documented(VERBS[verb]), documented(getattr(lha, verb))
    for name in ("strict_kinds", "text_keys", "canonical", "lenient", "limits"):
        # Arrow says "source format" where there are two.
        assert texts.get(name) == arrows.get(name, "").replace("source ", "") or name not in texts, name


@pytest.mark.parametrize(
    ("verb", "format", "options"),
    [
        ("decode", "iggy", {"errors": "null", "lenient": True, "strict_kinds": True, "text_keys": True, "limits": LIMITS}),
        ("select", "iggy", {
            "columns": {"a": "int8"}, "errors": "null", "lenient": True, "strict_kinds": True, "limits": LIMITS,
        }),
        (
            "encode",
            "iggy",
            {"on_loss": "drop", "kinds": {lh.Int32(3): ["int8", "kind-20"]}, "null_headers": "raise", "canonical": True},
        ),
        (
            "convert",
            "kafka",
            {
                "target": "iggy", "on_loss": "drop", "kinds": "binary", "null_headers": "raise", "canonical": True,
                "errors": "null", "lenient": True, "strict_kinds": True, "limits": LIMITS,
            },
        ),
        (
            "messages",
            "iggy-batch",
            {
                "columns": ["offset"], "headers": {"a": "int8"}, "errors": "null", "lenient": True, "strict_kinds": True,
                "text_keys": True, "limits": LIMITS,
            },
        ),
    ],
)  # fmt: skip
def test_every_option_is_handed_on(verb, format, options):
    """To the function that the workers call, by its name there."""
    function = VERBS[verb]
    own = {"column", "format", "keep", "into", "fields"}
    assert set(options) == set(inspect.signature(function).parameters) - own
    handed = dict(function("cell", format, **options).options)
    if verb in ("select", "messages"):
        assert handed.pop("dialect") == "spark"
    if verb == "messages":
        # What says which row a message is from goes in front.
        assert handed["columns"] == ("row", "offset")
        handed["columns"] = ["offset"]
    assert handed == options


def test_what_travels_can_be_pickled():
    import pickle

    kinds = {lh.Int32(3): "int8", b"\xff": ["int16", "binary"], "k": "kind-200"}
    transform = lhs.convert_headers("cell", "kafka", target="iggy", kinds=kinds)
    assert pickle.loads(pickle.dumps(transform)) == transform
    # The mapping is the user's; what is in the transform is not.
    kinds["k"] = "int8"
    assert transform.options["kinds"]["k"] == "kind-200"


def test_every_limit_is_an_option_of_the_sources():
    limits = lh.Limits(**{name: number for number, name in enumerate(lh.Limits._fields)})
    assert sources.limits(lhs.options(limits=limits)) == limits
