"""The layers of the package: which module may import which, imports inside functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import letterhead

ROOT = Path(letterhead.__file__).parent

# A package or module imports only those in the rows above its own; those in one row do not import each other.
LAYERS = (
    (
        "_native",
        "_durable_files",
        "_clock",
        "_formatting",
        "_invariants",
        "_names",
        "_object_paths",
        "_strict_json",
        "_times",
        "_topic_partition",
        "_warnings",
    ),
    (
        "errors",
        "_arrow_types",
        "_error_policies",
        "_context_managers",
        "_formats",
        "_optional_dependencies",
        "_read_once",
        "_requested",
    ),
    ("limits", "types", "_ddl", "_background", "_table_writers"),
    ("values", "_default_values", "_parse_options", "_row_groups", "_table_batches"),
    ("_header_edits", "_parquet_files"),
    ("headers",),
    ("fields", "message"),
    ("_header_text",),
    ("results",),
    ("one_message",),
    ("_value_text",),
    ("where",),
    ("operations",),
    ("conventions",),
    ("_read_options",),
    ("",),  # letterhead itself
    ("scan", "kip82"),
    ("arrow",),
    ("reader", "_row_request", "_binary_columns", "written", "_host_addresses", "_doctor"),
    ("offsets",),
    ("kafka",),
    ("schemas",),
    ("iggy",),
    ("state",),
    ("sources",),
    ("read", "write"),
    ("copies",),
    ("testing",),
    ("spark",),
    ("cli",),
    ("__main__",),
)


def modules() -> dict[str, Path]:
    paths = {}
    for path in ROOT.rglob("*.py"):
        parts = ["letterhead", *path.relative_to(ROOT).with_suffix("").parts]
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths | {"letterhead._native": ROOT / "_native.pyi"}


MODULES = modules()


def imports(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported, but for type checkers only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports(node)


def module_of(name: str) -> str | None:
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name or None


@cache
def graph() -> dict[str, set[str]]:
    """The modules that each module imports."""
    return {
        module: {
            imported
            for name in imports(ast.parse(path.read_text()))
            if (imported := module_of(name)) is not None and imported != module
        }
        for module, path in MODULES.items()
        if path.suffix == ".py"
    }


def group_of(module: str) -> str:
    return ([*module.split("."), ""])[1]


def test_every_package_has_a_layer() -> None:
    assert {group_of(module) for module in MODULES} == {group for layer in LAYERS for group in layer}


def test_layers_import_only_layers_above_in_table() -> None:
    rank = {group: number for number, layer in enumerate(LAYERS) for group in layer}
    wrong = [
        f"{module} -> {target}"
        for module, targets in sorted(graph().items())
        for target in sorted(targets)
        if group_of(module) != group_of(target) and rank[group_of(target)] >= rank[group_of(module)]
    ]
    assert wrong == []


def test_iggy_and_state_do_not_import_each_other() -> None:
    groups = {(group_of(module), group_of(target)) for module, targets in graph().items() for target in targets}
    assert not groups & {("iggy", "state"), ("state", "iggy")}


def test_modules_have_no_import_cycles() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None
