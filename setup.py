"""The optional extensions in C; everything else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class OptionalBuild(build_ext):
    """Build where a C compiler is there; elsewhere say so in a line, and go on without."""

    def build_extension(self, ext):
        try:
            super().build_extension(ext)
        except Exception as error:
            print(f"tacit: {ext.name} was not built ({error}); Python will do its work, slower", file=sys.stderr)


# -fno-trapping-math and -fno-math-errno let branches and square roots become vector code; values do not change
FLAGS = [] if sys.platform == "win32" else ["-O3", "-std=gnu11", "-Wno-psabi", "-fno-math-errno", "-fno-trapping-math"]

setup(
    cmdclass={"build_ext": OptionalBuild},
    ext_modules=[
        Extension(
            "tacit.engine._kernels",
            ["src/tacit/engine/_kernels.c"],
            depends=sorted(map(str, Path("src/tacit/engine").glob("_*.h"))),
            extra_compile_args=FLAGS,
            optional=True,
        ),
        Extension(
            "tacit.data.formats._csv", ["src/tacit/data/formats/_csv.c"], extra_compile_args=FLAGS, optional=True
        ),
        Extension("tacit.privacy._exact", ["src/tacit/privacy/_exact.c"], extra_compile_args=FLAGS, optional=True),
        Extension(
            "tacit.features._orientations",
            ["src/tacit/features/_orientations.c"],
            # a * b + c in two steps, as NumPy takes them: processors whose base has a fused step would use it
            extra_compile_args=[*FLAGS, *([] if sys.platform == "win32" else ["-ffp-contract=off"])],
            optional=True,
        ),
    ],
)
