"""Cost of staging and auditing a write of 2 million rows, against a bare append of the same rows.

Run as `python -m benchmarks.bench_write [--rounds N]`; the second part writes to a table of
10 million rows.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame

from benchmarks.harness import Measured, Way, compare, conditions, options, report
from benchmarks.targets import NO_TARGET, Target, targets_of
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.evolve import planning
from lakehouse.iceberg.rules.rows import accepted, between, excluded, expression, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.values.write_result import Published
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import Append, Column, IcebergTable

TARGETS = targets_of("write")
ROWS = 2_000_000
STANDING_ROWS = 10_000_000
SOURCE = "bench.source"
ORDERS = IcebergTable(
    name="bench.orders",
    comment="Orders, as a shop writes them.",
    columns=[
        Column("id", "bigint"),
        Column("customer_id", "bigint"),
        Column("merchant", "string"),
        Column("amount", "decimal(10,2)"),
        Column("currency", "string"),
        Column("status", "string"),
        Column("note", "string"),
        Column("created_at", "timestamp"),
    ],
    write=Append(once_by=()),
)
CURRENCIES = ("MYR", "SGD", "IDR", "THB", "PHP")
FIVE_RULES = (
    not_null("customer_id"),
    between("amount", 0, 100_000),
    accepted("currency", CURRENCIES),
    excluded("status", ["UNKNOWN"]),
    expression("note_is_short", "length(note) < 1000", columns=["note"]),
)


def orders(engine: Engine, first_id: int, rows: int) -> DataFrame:
    """Return reproducible orders with ids from `first_id`."""
    return engine.spark.range(first_id, first_id + rows).selectExpr(
        "id",
        "pmod(hash(id), 200000) AS customer_id",
        "concat('merchant-', pmod(hash(id, 1), 5000)) AS merchant",
        "CAST(pmod(hash(id, 2), 1000000) / 100 AS DECIMAL(10,2)) AS amount",
        f"element_at(array{CURRENCIES}, pmod(hash(id, 3), 5) + 1) AS currency",
        "element_at(array('PENDING', 'APPROVED', 'DECLINED'), pmod(hash(id, 4), 3) + 1) AS"
        " status",
        "sha2(CAST(id AS STRING), 256) AS note",
        "timestamp_seconds(1700000000 + id) AS created_at",
    )


class FreshTables:
    """Tables to write to: a new one for each run, empty or with existing rows."""

    def __init__(
        self, engine: Engine, standing: Callable[[IcebergTable], None] | None = None
    ) -> None:
        self.engine, self.standing = engine, standing

    def fresh(self, rules: Sequence[Rule] = ()) -> IcebergTable:
        """Return a table that is ready for a write."""
        table = replace(ORDERS, name=f"bench.orders_{uuid4().hex[:8]}", rules=rules)
        planning.ensure(self.engine, table, "")
        if self.standing:
            self.standing(table)
        return table


def bare_append(engine: Engine, table: IcebergTable) -> int:
    """Append the source without a lakehouse."""
    source(engine).writeTo(engine.catalog.sql_name(table.name)).append()
    return ROWS


def staged(engine: Engine, table: IcebergTable) -> int:
    """Write the source through stage, audit and publish."""
    published = write(engine, table, lambda: source(engine))
    assert isinstance(published, Published), published
    return published.added_rows


def source(engine: Engine) -> DataFrame:
    """Return the rows to write, read from a table like an asset input."""
    return engine.spark.table(engine.catalog.sql_name(SOURCE))


def measure(
    engine: Engine, standing: Callable[[IcebergTable], None] | None, rounds: int
) -> list[Measured]:
    """Compare a bare append with staged writes with different rules.

    Tables are created outside of the measured time.
    """
    blocking = tuple(replace(rule, on_failure="block") for rule in FIVE_RULES)
    tables = FreshTables(engine, standing)
    ready: dict[str, list[IcebergTable]] = {}

    def way(
        name: str,
        rules: Sequence[Rule],
        run: Callable[[Engine, IcebergTable], int],
        target: Target,
    ) -> Way:
        # One table for each warm-up and round.
        ready[name] = [tables.fresh(rules) for _ in range(rounds + 2)]
        return Way(name, lambda: run(engine, ready[name].pop()), target)

    return compare(
        [
            way("bare writeTo().append()", (), bare_append, NO_TARGET),
            way("five rules that quarantine", FIVE_RULES, staged, TARGETS["row rules"]),
            way("five rules that block", blocking, staged, TARGETS["row rules"]),
            way(
                "four rules that quarantine, and unique",
                (*FIVE_RULES[:4], unique("id")),
                staged,
                TARGETS["row rules and unique"],
            ),
        ],
        rounds=rounds,
    )


def standing_rows(engine: Engine) -> Callable[[IcebergTable], None]:
    """Write 10 million rows once; return a function that adds their files to a table."""
    full = replace(ORDERS, name="bench.full")
    write(engine, full, lambda: orders(engine, ROWS, STANDING_ROWS))
    catalog = engine.catalog.name
    files = str(
        Path(engine.catalog.load(full.name).location().removeprefix("file://")) / "data"
    )

    def fill(table: IcebergTable) -> None:
        engine.sql(
            f"CALL {catalog}.system.add_files(table => '{catalog}.{table.name}', source_table"
            f" => '`parquet`.`{files}`')"
        ).collect()

    return fill


def main(rounds: int) -> None:
    """Run both parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        engine = open_engine(replace(Settings.from_env(), home=Path(folder), spark_memory="6g"))
        write(engine, replace(ORDERS, name=SOURCE), lambda: orders(engine, 0, ROWS))
        parts = {"2 million rows onto an empty table": measure(engine, None, rounds)}
        parts["2 million rows onto 10 million"] = measure(engine, standing_rows(engine), rounds)
    sys.exit(0 if report("write", environment, parts) else 1)


if __name__ == "__main__":
    main(options(__doc__, rounds=5).parse_args().rounds)
