"""What a process does that is about to die: a write that ends at one exact point of its
life.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit import branch
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import between, castable
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_result import Outcome
from lakehouse.iceberg.write import append_or_overwrite, merge_rows
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.iceberg.declarations import SOURCE
from lakehouse_tests.processes import engine_of_process, kill_this_process, wait_for

LANDED = IcebergTable(
    name="bronze.landed",
    comment="Rows as they were delivered, each delivery once.",
    columns=[Column("id", "string"), Column("n", "int"), *SOURCE],
    write=Append(),
    rules=[castable("n", "int"), between("n", 0, 100, on_failure="block")],
)
WIDENED = replace(
    LANDED, columns=[*LANDED.columns, Column("added", "string"), Column("added_too", "string")]
)
LATEST = IcebergTable(
    name="silver.latest",
    comment="One row for each id, as last delivered.",
    columns=[Column("id", "string"), Column("n", "int")],
    write=Merge(on=["id"]),
    rules=[unique("n")],
)
FIRST = [("a", "1"), ("b", "2")]
SECOND = [("b", "4"), ("c", "3"), ("d", "many")]
"""The last row is refused: it is no number."""


def write_first(engine: Engine) -> None:
    """Write what is there before anybody dies."""
    write(engine, LANDED, delivery(engine, "first", FIRST))
    write(engine, LATEST, latest_rows, {"landed": incremental(LANDED.name)})


def write_second(engine: Engine, table: IcebergTable = LANDED) -> list[Outcome]:
    """Write what the dying process writes, and the next one again."""
    more = {name: "later" for name in table.column_names if name not in LANDED.column_names}
    return [
        write(engine, table, delivery(engine, "second", SECOND, more)),
        write(engine, LATEST, latest_rows, {"landed": incremental(LANDED.name)}),
    ]


def delivery(
    engine: Engine,
    file: str,
    rows: Sequence[tuple[str, str]],
    more: Mapping[str, str] | None = None,
) -> Callable[[], DataFrame]:
    """Return a compute function that gives the rows of one delivered file."""
    values = ", ".join(f"('{id_}', '{n}', {at}L)" for at, (id_, n) in enumerate(rows, 1))
    constants = {"_source_file": file, "_source_sha256": f"sha-{file}", **(more or {})}
    extra = ", ".join(f"'{value}' AS {name}" for name, value in constants.items())
    return lambda: engine.sql(
        f"SELECT *, {extra} FROM VALUES {values} AS delivered(id, n, _source_row)"
    )


def latest_rows(landed: DataFrame) -> DataFrame:
    """Compute `silver.latest` from what was delivered; an id stands once in a delivery."""
    return landed.selectExpr("id", "n")


def _die_before(module: Any, name: str, table: str) -> None:
    """Have this process die when the engine calls a function about a table."""
    real = getattr(module, name)

    def dying(*given: Any, **named: Any) -> Any:
        if table in _tables(given):
            kill_this_process()
        return real(*given, **named)

    setattr(module, name, dying)


def _die_after(module: Any, name: str) -> None:
    real = getattr(module, name)

    def dying(*given: Any, **named: Any) -> Any:
        done = real(*given, **named)
        if done is not None:
            kill_this_process()
        return done

    setattr(module, name, dying)


def _die_after_the_first_new_column() -> None:
    real = Engine.sql

    def dying(engine: Engine, statement: str, **parameters: Any) -> DataFrame:
        done = real(engine, statement, **parameters)
        if "ADD COLUMN" in statement:
            kill_this_process()
        return done

    Engine.sql = dying  # type: ignore[method-assign]


def _tables(given: Sequence[Any]) -> set[str]:
    """Return the names of the tables that a call of the engine is about."""
    tables = {argument for argument in given if isinstance(argument, str)}
    tables |= {argument.table.name for argument in given if hasattr(argument, "write_id")}
    return tables | {argument.name for argument in given if isinstance(argument, IcebergTable)}


DEATHS: dict[str, Callable[[], None]] = {
    "between staging and the audit": lambda: _die_before(
        append_or_overwrite, "audit", LANDED.name
    ),
    "between the audit and publishing": lambda: _die_before(
        append_or_overwrite, "publish", LANDED.name
    ),
    "between publishing and dropping the branch": lambda: _die_before(
        branch, "drop_branch", LANDED.name
    ),
    "between the quarantine and publishing": lambda: _die_after(
        append_or_overwrite, "quarantine"
    ),
    "between staging a merge and publishing it": lambda: _die_before(
        merge_rows, "publish", LATEST.name
    ),
    "in the middle of an evolution": _die_after_the_first_new_column,
}
EVOLVING = "in the middle of an evolution"


def write_and_die(at: str) -> None:
    """Write the second delivery, and die on the way."""
    engine = engine_of_process()
    DEATHS[at]()
    write_second(engine, WIDENED if at == EVOLVING else LANDED)


def slow(rows: DataFrame, gate: Path) -> DataFrame:
    """Return the same rows, which come when the gate is opened; a note is left there once they
    are asked for, of the folder that the task works in.
    """
    from pyspark.sql.functions import udf

    opened, asked = str(gate / "opened"), str(gate / "asked")

    def wait(value: str) -> str:
        # Runs in a worker of Spark, which imports nothing of the tests.
        from pathlib import Path
        from time import sleep

        Path(asked).write_text(str(Path.cwd()))
        while not Path(opened).exists():
            sleep(0.05)
        return value

    return rows.coalesce(1).withColumn("id", udf(wait, "string", useArrow=False)("id"))


def at_half(gate: Path, action: Callable[[], None]) -> None:
    """Do something once a slow write is under way; where that fails, the write goes on, and does
    not wait for ever.
    """

    def watch() -> None:
        try:
            wait_for((gate / "asked").exists, "a slow write")
            action()
        except BaseException:
            (gate / "opened").touch()
            raise

    Thread(target=watch, daemon=True).start()


def write_slowly_and_die(gate: str) -> None:
    """Begin to write the second delivery, and die while Spark writes it."""
    engine = engine_of_process()
    at_half(Path(gate), kill_this_process)
    _write_slowly(engine, Path(gate))


def write_and_be_interrupted(gate: str) -> list[str]:
    """Begin to write the second delivery, be interrupted as by Ctrl-C, and write it again in
    the same process.
    """
    engine = engine_of_process()
    at_half(Path(gate), lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        _write_slowly(engine, Path(gate))
        return ["not interrupted"]
    except KeyboardInterrupt:
        (Path(gate) / "opened").touch()
    time.sleep(1)
    return [type(done).__name__ for done in write_second(engine)]


def _write_slowly(engine: Engine, gate: Path) -> None:
    # A rule that quarantines would have the rows computed before they are staged.
    table = replace(LANDED, rules=[rule for rule in LANDED.rules if rule.on_failure == "block"])
    rows = delivery(engine, "second", SECOND[:2])
    write(
        engine,
        table,
        lambda: slow(rows().selectExpr("* EXCEPT (n)", "CAST(n AS INT) AS n"), gate),
    )
