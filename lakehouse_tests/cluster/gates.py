"""Work that waits at a gate, a folder: `asked` when it waits, `opened` to continue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from lakehouse_tests.iceberg.kills import slow
from lakehouse_tests.processes import Child, wait_for

_REACHED_SECONDS = 300


def let_wait(owner: Any, name: str, gate: Path) -> None:
    """Let the rows that a function is given first come when a gate is opened."""
    real: Callable[..., Any] = getattr(owner, name)

    def waiting(*given: Any, **named: Any) -> Any:
        if gate.exists():
            return real(*given, **named)
        gate.mkdir(parents=True)
        rows = (slow(one, gate) if isinstance(one, DataFrame) else one for one in given)
        return real(*rows, **named)

    setattr(owner, name, waiting)


def let_publish_wait(module: Any, gate: Path) -> None:
    """Let the driver wait at a gate before it publishes, and leave a note there afterwards."""
    real = module.publish

    def waiting(*given: Any, **named: Any) -> Any:
        gate.mkdir(parents=True)
        (gate / "asked").touch()
        wait_for((gate / "opened").exists, f"the opening of {gate}", 300)
        published = real(*given, **named)
        (gate / "published").touch()
        return published

    module.publish = waiting


def wait_until_asked(gate: Path, child: Child) -> None:
    """Wait until something of a process waits at a gate."""

    def is_asked() -> bool:
        assert child.is_alive, child.said
        return (gate / "asked").exists()

    wait_for(is_asked, f"work at {gate}", _REACHED_SECONDS)
