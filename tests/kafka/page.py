"""The code of `docs/how-to/set-bad-rows-aside.md`, for tests to run it: what a reader copies is what is tested."""

from __future__ import annotations

import ast
from typing import Any

from tests.helpers.pages import ROOT, blocks

PAGE = "docs/how-to/set-bad-rows-aside.md"


class Page:
    """The page, on a broker of the tests and on topics whose names have something in front.

    Parameters
    ----------
    address : str
        Of the broker.
    prefix : str
        What stands in front of ``orders`` in the names of topics.
    """

    def __init__(self, address: str, prefix: str) -> None:
        assert (ROOT / PAGE).read_text().count("127.0.0.1:9092") == 2  # where it is said, and in the code
        self.session, *self.blocks = (
            block.replace("127.0.0.1:9092", address).replace('"orders', f'"{prefix}orders') for block in blocks(PAGE)
        )
        assert "SparkSession.builder" in self.session
        [example] = blocks(PAGE, "json")
        self.example = example.replace('"orders', f'"{prefix}orders').removesuffix("\n")
        self.source, self.clean, self.quarantine = (
            f"{prefix}orders{suffix}" for suffix in ("", "-clean", "-quarantine")
        )

    def run(self, spark: Any) -> dict[str, Any]:
        """Run everything but the making of a session; the names that are there then."""
        return self._run(spark, ast.Module([statement for block in self._parsed() for statement in block.body], []))

    def define(self, spark: Any) -> dict[str, Any]:
        """Run its imports, constants and functions alone; the names that are there then."""
        body = [statement for block in self._parsed() for statement in block.body if _defines(statement)]
        return self._run(spark, ast.Module(body, []))

    def _parsed(self) -> list[ast.Module]:
        return [ast.parse(block, PAGE) for block in self.blocks]

    def _run(self, spark: Any, code: ast.Module) -> dict[str, Any]:
        names = {"spark": spark}
        exec(compile(code, PAGE, "exec"), names)
        return names


def _defines(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.isupper()
    return False
