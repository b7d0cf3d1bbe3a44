"""A project of a test's own, in which commands of this process work."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakehouse.scaffolding.begin_project import begin_project


@contextmanager
def project_at(root: Path, patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a project, work in it, and forget its modules afterwards."""
    # An earlier test of this process may have left a package of that name.
    forget(root.name)
    patch.setattr(
        sys, "path", [each for each in sys.path if not Path(each, root.name).exists()]
    )
    begin_project(root, None, "0.1.0")
    patch.chdir(root)
    patch.delenv("LAKEHOUSE_HOME", raising=False)
    yield root
    forget(root.name)


def forget(package: str) -> None:
    """Let a package be imported anew, as a process of its own does."""
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        del sys.modules[name]


def forget_below(root: Path) -> None:
    """Forget the packages that lie in a folder: a later test may have some of the same names."""
    for name in {name.partition(".")[0] for name in sys.modules}:
        module = sys.modules.get(name)
        places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or [])]
        if any(place and Path(place).is_relative_to(root) for place in places):
            forget(name)
