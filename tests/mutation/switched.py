"""Compile many mutants of the core into one program, each behind a number that the environment switches on.

A mutant that is compiled alone costs a build of the core. Here a changed expression becomes
``(if crate::mutation::on(17) { a <= b } else { a < b })``, so that one build has all of them, and each costs one run of the tests.
Mutants that the compiler refuses in this form, such as those of constants, are left out.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

Mutant = Mapping[str, Any]
"""A mutant as ``cargo mutants --list --json`` describes it."""

SWITCH = """\
//! Says which mutant is switched on.

use std::sync::LazyLock;

static ACTIVE: LazyLock<usize> = LazyLock::new(|| std::env::var("MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0));

#[inline]
pub fn on(mutant: usize) -> bool {
    *ACTIVE == mutant
}
"""
PARSER = Parser(Language(tree_sitter_rust.language()))


class Source:
    """A file of the core with its mutants, which are numbered."""

    def __init__(self, text: bytes, mutants: Mapping[int, Mutant]) -> None:
        self._text = text
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._at: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
        for number, mutant in mutants.items():
            start = mutant["span"]["start"]
            line = text[starts[start["line"] - 1] :].decode()
            offset = starts[start["line"] - 1] + len(line[: start["column"] - 1].encode())
            self._at[mutant["genre"], offset].append((number, mutant["replacement"]))
        self.rendered: set[int] = set()

    def render(self) -> str:
        """Return the file with all its mutants."""
        return self._node(PARSER.parse(self._text).root_node)

    def _mutants(self, genre: str, offset: int) -> list[tuple[int, str]]:
        mutants = self._at.get((genre, offset), [])
        self.rendered |= {number for number, _ in mutants}
        return mutants

    def _node(self, node: Node) -> str:
        match node.type:
            case "binary_expression" | "compound_assignment_expr":
                return self._operation(node)
            case "unary_expression":
                return self._negation(node)
            case "match_arm":
                return self._arm(node)
            case "match_pattern" if condition := node.child_by_field_name("condition"):
                return self._text[node.start_byte : condition.start_byte].decode() + self._guard(condition)
            case "field_initializer":
                return self._field(node)
        return self._children(node)

    def _operation(self, node: Node) -> str:
        operator = node.child_by_field_name("operator")
        mutants = self._mutants("BinaryOperator", operator.start_byte)
        if not mutants:
            return self._children(node)
        left, right = (self._node(node.child_by_field_name(side)) for side in ("left", "right"))
        if node.type == "binary_expression":
            left = f"({left})"
        changes = [(number, f"{left} {after} ({right})") for number, after in mutants]
        return choice(changes, f"{left} {operator.text.decode()} ({right})")

    def _negation(self, node: Node) -> str:
        mutants = self._mutants("UnaryOperator", node.start_byte)
        operand = self._node(node.children[-1])
        return choice([(number, operand) for number, _ in mutants], node.children[0].text.decode() + operand)

    def _arm(self, node: Node) -> str:
        mutants = self._mutants("MatchArm", node.start_byte)
        if not mutants:
            return self._children(node)
        pattern = node.child_by_field_name("pattern")
        condition = pattern.child_by_field_name("condition")
        guard = " && ".join(marked(number, f"!crate::mutation::on({number})") for number, _ in mutants)
        head = pattern.text.decode()
        if condition:
            head = self._text[pattern.start_byte : condition.start_byte].decode().rstrip().removesuffix("if")
            guard += f" && ({self._guard(condition)})"
        return f"{head} if {guard}" + self._children(node, after=pattern.end_byte)

    def _field(self, node: Node) -> str:
        mutants = self._mutants("StructField", node.start_byte)
        base = next((part for part in node.parent.children if part.type == "base_field_initializer"), None)
        if not mutants or base is None:
            return self._children(node)
        name, value = (node.child_by_field_name(part) for part in ("field", "value"))
        field, default = name.text.decode(), base.text.decode().removeprefix("..")
        return f"{field}: {choice([(number, f'({default}).{field}') for number, _ in mutants], self._node(value))}"

    def _guard(self, condition: Node) -> str:
        result = self._node(condition)
        for number, after in self._mutants("MatchArmGuard", condition.start_byte):
            switched = (
                f"crate::mutation::on({number}) || " if after == "true" else f"!crate::mutation::on({number}) && "
            )
            result = marked(number, f"({switched}({result}))")
        return result

    def _children(self, node: Node, after: int = 0) -> str:
        if not node.children:
            return self._text[node.start_byte : node.end_byte].decode()
        at, parts = max(node.start_byte, after), []
        for child in node.children:
            if child.start_byte < after:
                continue
            parts.append(self._text[at : child.start_byte].decode())
            # The body of a function begins with its first token, and so does its mutant.
            if node.type == "block" and (node.parent and node.parent.type == "function_item"):
                for number, value in self._mutants("FnValue", child.start_byte):
                    parts.append(marked(number, f"if crate::mutation::on({number}) {{ return {value}; }} "))
            parts.append(self._node(child))
            at = child.end_byte
        parts.append(self._text[at : node.end_byte].decode())
        return "".join(parts)


def marked(number: int, text: str) -> str:
    """Return text between marks, by which an error of the compiler is blamed on a mutant."""
    return f"/*<{number}*/{text}/*{number}>*/"


def choice(changes: Sequence[tuple[int, str]], otherwise: str) -> str:
    """Return an expression that is one of several."""
    result = otherwise
    for number, text in changes:
        result = marked(number, f"(if crate::mutation::on({number}) {{ {text} }} else {{ {result} }})")
    return result


def write(root: Path, tree: Path, mutants: Mapping[int, Mutant]) -> set[int]:
    """Write the sources with these mutants below another root, and return those that have no such form."""
    by_file: dict[str, dict[int, Mutant]] = defaultdict(dict)
    for number, mutant in mutants.items():
        by_file[mutant["file"]][number] = mutant
    missing = set()
    for path in (root / "src").rglob("*.rs"):
        name = str(path.relative_to(root))
        text = path.read_bytes()
        if name in by_file:
            source = Source(text, by_file[name])
            result = source.render()
            missing |= by_file[name].keys() - source.rendered
        else:
            result = text.decode()
        if name == "src/lib.rs":
            result = re.sub(r"^(pub )?mod ", r"pub mod mutation;\n\g<0>", result, count=1, flags=re.MULTILINE)
        place = tree / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != result:
            place.write_text(result)
    (tree / "src" / "mutation.rs").write_text(SWITCH)
    return missing


def refused(tree: Path, command: Sequence[str], mutants: Set[int]) -> set[int]:
    """Compile, and return the mutants that the errors of the compiler are about."""
    done = subprocess.run([*command, "--message-format=json"], cwd=tree, capture_output=True, text=True, check=False)
    blamed: set[int] = set()
    others: list[str] = []
    for line in done.stdout.splitlines():
        message = json.loads(line).get("message") or {}
        if message.get("level") != "error":
            continue
        numbers: set[int] = set()
        for span in message["spans"]:
            text = (tree / span["file_name"]).read_bytes() if (tree / span["file_name"]).exists() else b""
            numbers |= enclosing(text, span["byte_start"]) or enclosing(text, span["byte_end"])
        blamed |= numbers & mutants
        if not numbers and message["spans"]:
            others.append(message["rendered"])
    if done.returncode and not blamed:
        raise SystemExit("".join(others) or done.stderr)
    return blamed


def enclosing(text: bytes, offset: int) -> set[int]:
    """Return the innermost mutant around a place."""
    opened: list[int] = []
    for mark in re.finditer(rb"/\*<(\d+)\*/|/\*(\d+)>\*/", text[:offset]):
        if mark[1]:
            opened.append(int(mark[1]))
        else:
            while opened and opened.pop() != int(mark[2]):
                pass
    return set(opened[-1:])
