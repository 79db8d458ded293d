"""Measure how large and how tangled the source tree is: code lines, modules, imports and names.

    python -m tests.meter                    the working tree
    python -m tests.meter --before REV       another commit beside it; may be given several times

What is counted, below src:

- code lines: lines with at least part of a token that is not a comment; docstrings do not count.
- modules: Python files. The longest ones are measured in total lines, docstrings, comments and blank lines included.
- files entered: modules of which a function runs during the second of two equal training runs in one process.
- import cycles: groups of modules that import each other, directly or through others. Imports inside functions count.
  `from package import module` imports both. Imports under `if TYPE_CHECKING:` do not happen at run time: a second row
  counts the cycles that they take part in as well. Names in registries ("tacit.module:Name") are not imports, and the
  top package is left out, because any import loads it first.
- class names defined twice: names of more than one class statement.
"""
