"""Cost of rules on 5 million rows: in one pass, with one query per rule, and with cuallee.

Run as `python -m benchmarks.bench_rules [--rounds N] [--rows N]`. The limit applies to computed rows
as in a write, which each query recomputes. On a stored table, a query reads only its columns and
skips files and row groups by statistics, so one pass saves less.
"""

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cuallee import Check, CheckLevel
from pyspark.sql import DataFrame

from benchmarks.bench_write import CURRENCIES, ORDERS, orders
from benchmarks.harness import Measured, Way, compare, conditions, options, report
from benchmarks.targets import NO_TARGET, Target, targets_of
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.read.pinned_frames import read_main
from lakehouse.iceberg.rules.aggregate_rules import null_fraction
from lakehouse.iceberg.rules.audit import audit
from lakehouse.iceberg.rules.evaluation import evaluate
from lakehouse.iceberg.rules.rows import (
    accepted,
    between,
    excluded,
    expression,
    length,
    not_null,
    pattern,
)
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.orchestration.deployment import open_engine
from lakehouse.settings import Settings
from lakehouse.tables.rule import Rule
from lakehouse.tables.table import IcebergTable

TARGETS = targets_of("rules")
ROWS = 5_000_000
STATUSES = ("PENDING", "APPROVED", "DECLINED")
TWENTY_RULES = (
    between("customer_id", 0, 150_000),
    between("customer_id", low=0, name="customer_id_not_negative"),
    between("amount", 1, 9_000),
    between("amount", low=0, name="amount_not_negative"),
    between("created_at", low=datetime(2023, 11, 15, tzinfo=UTC)),
    accepted("currency", CURRENCIES),
    accepted("currency", CURRENCIES[:4], name="four_currencies"),
    excluded("currency", ["USD", "EUR"]),
    length("currency", 3, 3),
    pattern("currency", "[A-Z]{3}"),
    accepted("status", STATUSES),
    excluded("status", ["UNKNOWN"]),
    length("status", 1, 8),
    expression("rupiah_in_thousands", "currency <> 'IDR' OR amount >= 1000"),
    expression("small_where_declined", "status <> 'DECLINED' OR amount < 5000"),
    expression("baht_not_pending", "status <> 'PENDING' OR currency <> 'THB'"),
    expression("large_by_known_customers", "amount < 9000 OR customer_id < 100000"),
    expression(
        "ringgit_before_march",
        "currency <> 'MYR' OR created_at < TIMESTAMP'2024-03-01 00:00:00'",
    ),
    expression(
        "approved_is_paid", "status <> 'APPROVED' OR (amount > 0 AND customer_id IS NOT NULL)"
    ),
    expression(
        "pending_is_new",
        "status <> 'PENDING' OR created_at > TIMESTAMP'2023-12-01 00:00:00' OR amount < 10",
    ),
)
"""On numbers and codes; without NULL counts, which Iceberg answers from metadata for a single query.
"""
WIDE_RULES = (
    *TWENTY_RULES[:12],
    not_null("id"),
    not_null("merchant"),
    excluded("merchant", ["merchant-0", "merchant-1"]),
    length("merchant", 10, 13),
    pattern("merchant", "merchant-[0-9]{1,3}"),
    null_fraction("note", at_most=0.5),
    length("note", high=64),
    expression("note_is_a_hash", "note RLIKE '^[0-9a-f]*$'", columns=["note"]),
)
"""As many rules, some on names and on texts of 64 characters, for which reading dominates."""
SHARED_RULES = (
    not_null("id"),
    not_null("customer_id"),
    not_null("amount"),
    unique("id"),
    between("customer_id", 0, 150_000),
    between("amount", 1, 9_000),
    accepted("currency", CURRENCIES[:4]),
    accepted("status", STATUSES),
    excluded("status", ["PENDING"]),
    pattern("merchant", "merchant-[0-9]{1,3}"),
)
"""Rules that cuallee also has, with the same meaning without NULLs."""


def tolerant(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return rules that only count violations without samples, as the alternatives do."""
    return tuple(
        replace(rule, on_failure="warn", warn_above=0.99, fail_above=None) for rule in rules
    )


def in_one_pass(engine: Engine, table: IcebergTable) -> list[int]:
    """Evaluate the rules of a table as a check does."""
    return [result.failed_rows for result in evaluate(engine, table)]


def query_by_query(rows: DataFrame, rules: Sequence[Rule]) -> list[int]:
    """Count the violations of each rule with one query per rule."""
    return [rows.where(rule.predicate()).count() for rule in rules]


def by_cuallee(rows: DataFrame) -> list[int]:
    """Evaluate `SHARED_RULES` with cuallee."""
    check = Check(CheckLevel.WARNING, "orders")
    check.is_complete("id").is_complete("customer_id").is_complete("amount").is_unique("id")
    check.is_between("customer_id", (0, 150_000)).is_between("amount", (1, 9_000))
    check.is_contained_in("currency", CURRENCIES[:4]).is_contained_in("status", STATUSES)
    check.not_contained_in("status", ("PENDING",)).has_pattern(
        "merchant", "^merchant-[0-9]{1,3}$"
    )
    return [
        row["violations"]
        for row in sorted(check.validate(rows).collect(), key=lambda row: row["id"])
    ]


def newest(rows: DataFrame) -> DataFrame:
    """Return the newest version of each order: all of them, but the query must verify it."""
    number = "row_number() OVER (PARTITION BY id ORDER BY created_at DESC) AS version"
    return rows.selectExpr("*", number).where("version = 1").drop("version")


def on_computed_rows(engine: Engine, table: IcebergTable, rounds: int) -> list[Measured]:
    """Compare one pass with one query per rule on computed rows, as in a write."""
    rules = tolerant(TWENTY_RULES)
    rows = newest(read_main(engine, table.name))
    return compare(
        [
            Way("one query a rule", lambda: query_by_query(rows, rules)),
            Way(
                "one pass",
                lambda: [
                    result.failed_rows for result in audit(engine, table, rows, rules).results
                ],
                TARGETS["computed rows"],
            ),
        ],
        rounds=rounds,
    )


def on_a_table(
    engine: Engine,
    table: IcebergTable,
    rules: Sequence[Rule],
    rounds: int,
    target: Target = NO_TARGET,
) -> list[Measured]:
    """Compare one pass with one query per rule on a table, where a query reads only its columns."""
    ruled = replace(table, rules=tolerant(rules))
    return compare(
        [
            Way(
                "one query a rule",
                lambda: query_by_query(read_main(engine, table.name), ruled.rules),
            ),
            Way("one pass", lambda: in_one_pass(engine, ruled), target),
        ],
        rounds=rounds,
    )


def measure(engine: Engine, table: IcebergTable, rounds: int) -> dict[str, list[Measured]]:
    """Compare one pass with one query per rule, and with cuallee."""
    shared = replace(table, rules=tolerant(SHARED_RULES))
    rows = read_main(engine, table.name)
    return {
        f"20 rules on {rows.count():,} rows that are computed": on_computed_rows(
            engine, table, rounds
        ),
        "20 rules on a table": on_a_table(
            engine, table, TWENTY_RULES, rounds, TARGETS["stored table"]
        ),
        "20 rules on a table, some on long texts": on_a_table(
            engine, table, WIDE_RULES, rounds
        ),
        f"{len(SHARED_RULES)} rules that cuallee has too": compare(
            [
                Way("cuallee", lambda: by_cuallee(rows)),
                Way(
                    "one pass, and one for unique",
                    lambda: in_one_pass(engine, shared),
                    TARGETS["against cuallee"],
                ),
            ],
            rounds=rounds,
        ),
    }


def main() -> None:
    """Run both parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    parser = options(__doc__, rounds=5)
    parser.add_argument("--rows", type=int, default=ROWS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        engine = open_engine(replace(Settings.from_env(), home=Path(folder), spark_memory="6g"))
        write(engine, ORDERS, lambda: orders(engine, 0, arguments.rows))
        parts = measure(engine, ORDERS, arguments.rounds)
    sys.exit(0 if report("rules", environment, parts) else 1)


if __name__ == "__main__":
    main()
