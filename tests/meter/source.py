"""What can be measured without running anything: the text of the modules below a source directory."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def modules(src: Path) -> dict[str, Path]:
    """Return the files of all modules below a source directory, by dotted name; a package is its __init__."""
    found = {}
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def code_lines(text: str) -> int:
    """Return the number of lines with code: without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def total_lines(src: Path) -> list[tuple[str, int]]:
    """Return the paths of all modules and their total lines, the longest first."""
    counts = [(str(path.relative_to(src)), len(path.read_text().splitlines())) for path in modules(src).values()]
    return sorted(counts, key=lambda own: (-own[1], own[0]))


def modules_per_package(src: Path) -> dict[str, int]:
    """Return the number of modules that lie directly in each package, __init__ not counted, the most first."""
    found = modules(src)
    counts = Counter(name.rpartition(".")[0] for name, path in found.items() if path.name != "__init__.py")
    return dict(sorted(counts.items(), key=lambda own: (-own[1], own[0])))


def classes_defined_twice(src: Path) -> dict[str, list[str]]:
    """Return the class names with several definitions, each with the modules that define it."""
    defined = defaultdict(list)
    for name, path in modules(src).items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(name)
    return {name: places for name, places in sorted(defined.items()) if len(places) > 1}


def import_cycles(src: Path, type_checking: bool = False) -> list[list[str]]:
    """Return the groups of modules that import each other, imports inside functions included.

    Parameters
    ----------
    src
        The directory that holds the packages.
    type_checking
        Also follow imports under `if TYPE_CHECKING:`, which do not happen at run time.

    """
    graph = imports(src, type_checking)
    reached = {name: _reachable(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in graph}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def imports(src: Path, type_checking: bool = False) -> dict[str, set[str]]:
    """Return the modules in packages that each of them imports; `from package import module` imports both."""
    found = {name: path for name, path in modules(src).items() if "." in name}  # any import loads the top package first
    graph = {}
    for name, path in found.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        graph[name] = set(_imported(ast.parse(path.read_text()), package, type_checking)) & found.keys() - {name}
    return graph


def _imported(tree: ast.AST, package: str, type_checking: bool) -> Iterator[str]:
    """Yield the names of everything that a module may import: modules, and attributes as if they were modules."""
    for node in _run(tree, type_checking):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _run(node: ast.AST, type_checking: bool) -> Iterator[ast.AST]:
    """Yield a node and all nodes below it, without those under `if TYPE_CHECKING:` unless these are asked for."""
    yield node
    below: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and not type_checking and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        below = node.orelse
    for child in below:
        yield from _run(child, type_checking)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that importing `start` can reach, itself only if it is in a cycle."""
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph[name])
    return found
