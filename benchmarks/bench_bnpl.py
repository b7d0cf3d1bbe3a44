"""Cost of rules, staging and orchestration for the transactions, against a plain script.

Run as `python -m benchmarks.bench_bnpl [--rounds N] [--millions N]`: files to gold for each choice
of Java compilers, the same through Dagster with all rules, late files of 1,000 rows against a
recompute of all days, and the stored bytes.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.harness import (
    Figure,
    Measured,
    TimedWay,
    Way,
    compare,
    compare_times,
    conditions,
    options,
    report,
    show,
)
from benchmarks.process_times import Times, times_of
from benchmarks.real_upkeep import keep_up
from benchmarks.targets import targets_of
from lakehouse.assets.bronze.bnpl_transactions_raw import FEED
from lakehouse.assets.bronze.bnpl_transactions_raw import TABLE as RAW
from lakehouse.assets.gold.bnpl_daily_summary import TABLE as SUMMARY
from lakehouse.assets.gold.customer_profiles import TABLE as PROFILES
from lakehouse.assets.silver.bnpl_transactions_clean import TABLE as CLEAN
from lakehouse.definitions import TABLES, definitions
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.referenced_files import metadata_files
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.feed_runs import ingest
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.backfill_runs import backfill
from lakehouse.sample_data.bnpl.generator import generate
from lakehouse.settings import Settings
from lakehouse.spark.jvm import FIRST_COMPILER
from lakehouse.tables.table import IcebergTable, Merge
from lakehouse.tables.table_properties import table_properties
from lakehouse.tables.upkeep import DEFAULTS

TARGETS = targets_of("bnpl")
FIRST = date(2026, 1, 1)
DAYS = 100
LATE_ROWS = 1000
MEMORY = "8g"
BOTH_LOAD = (RAW, CLEAN, SUMMARY, PROFILES)
FILE_PROPERTIES = (
    "write.format.default",
    "write.target-file-size-bytes",
    "write.parquet.compression-codec",
    "write.parquet.compression-level",
)
"""Table properties that determine the file size and most of the write time."""
CODEC = "ZSTD"
CHECKSUM = (
    "SELECT count(1), sum(transactions), sum(approved), sum(gross_amount),"
    " sum(distinct_customers) FROM {table}"
)
VALID = """
    transaction_id IS NOT NULL AND customer_id IS NOT NULL AND merchant_id IS NOT NULL AND amount > 0
    AND currency IN ('MYR', 'SGD', 'IDR', 'THB', 'PHP') AND installments IN (1, 3, 6, 12)
    AND status IN ('PENDING', 'APPROVED', 'DECLINED', 'REFUNDED')
    AND transaction_date BETWEEN DATE'2020-01-01' AND current_date() AND created_at IS NOT NULL
"""


class Homes:
    """Creates a new home for each run, on one JVM, with the same files."""

    def __init__(self, folder: Path, files: Iterable[Path]) -> None:
        self.folder, self.files, self._number = folder, tuple(files), count()
        self.settings = replace(Settings.from_env(), spark_memory=MEMORY)

    def fresh(self) -> Settings:
        """Return a new home with all files in its inbox."""
        home = self.folder / f"home{next(self._number)}"
        inbox = home / FEED.inbox
        inbox.mkdir(parents=True)
        for file in self.files:
            (inbox / file.name).hardlink_to(file)
        return replace(self.settings, home=home)


def through_dagster(settings: Settings) -> Any:
    """Ingest all files with all rules and checks."""
    result = ingest(definitions, TABLES, settings, FEED)
    assert result.success, result.messages
    return checksum(open_engine(settings), SUMMARY.name)


def plain(settings: Settings) -> Any:
    """Do the same in a few statements: no rules, staging, orchestration or quarantine."""
    engine = open_engine(settings)
    spark = engine.spark
    for layer in ("bronze", "silver", "gold"):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {engine.catalog.name}.{layer}")
    groups: dict[str, list[str]] = {}
    for path in sorted((settings.home / FEED.inbox).iterdir()):
        header = path.open(encoding="utf-8").readline()
        groups.setdefault(header.strip(), []).append(path.as_uri())
    frames = [_read(spark, header.split(","), paths) for header, paths in groups.items()]
    raw = frames[0]
    for frame in frames[1:]:
        raw = raw.unionByName(frame, allowMissingColumns=True)
    event_date = raw["transaction_date"].substr(1, 10).try_cast("date")
    writer = (
        raw.withColumn("_event_date", event_date)
        .writeTo(_name(engine, RAW.name))
        .using("iceberg")
        .partitionedBy("_event_date")
        .option("distribution-mode", "none")
        .option("fanout-enabled", "true")
    )
    for name, value in file_properties(RAW).items():
        writer = writer.tableProperty(name, value)
    writer.create()
    engine.sql(_clean(engine))
    engine.sql(_summary(engine))
    engine.sql(_profiles(engine))
    return checksum(engine, SUMMARY.name)


def _read(spark: Any, header: list[str], paths: list[str]) -> DataFrame:
    schema = ", ".join(f"{name} string" for name in header)
    return (
        spark.read.schema(schema)
        .csv(paths, header=True)
        .selectExpr(
            "*",
            "_metadata.file_name AS _source_file",
            "monotonically_increasing_id() AS _source_row",
        )
    )


def file_properties(table: IcebergTable) -> dict[str, str]:
    """Return the table properties that affect the files."""
    properties = table_properties(table)
    return {name: properties[name] for name in FILE_PROPERTIES}


def _properties(table: IcebergTable) -> str:
    pairs = [f"'{name}' = '{value}'" for name, value in file_properties(table).items()]
    return f"TBLPROPERTIES ({', '.join(pairs)})"


def _name(engine: Engine, table: str) -> str:
    return engine.catalog.sql_name(table)


def _clean(engine: Engine) -> str:
    return f"""
        CREATE TABLE {_name(engine, CLEAN.name)} USING iceberg PARTITIONED BY (days(transaction_date)) {_properties(CLEAN)} AS
        SELECT transaction_id, customer_id, merchant_id, merchant_category, amount, currency, installments,
               payment_method, status, transaction_date, created_at, customer_email, region, _source_file
        FROM (
            SELECT *, row_number() OVER (
                PARTITION BY transaction_id ORDER BY created_at DESC, _source_file DESC, _source_row DESC
            ) AS n FROM (
                SELECT try_cast(transaction_id AS bigint) AS transaction_id,
                       try_cast(customer_id AS bigint) AS customer_id, merchant_id, merchant_category,
                       if(amount RLIKE '^[0-9]+([.][0-9][0-9]?)?$', try_cast(amount AS decimal(10,2)), NULL) AS amount,
                       currency, try_cast(installments AS int) AS installments, payment_method, status,
                       _event_date AS transaction_date, try_cast(created_at AS timestamp) AS created_at,
                       customer_email, region, _source_file, _source_row
                FROM {_name(engine, RAW.name)}
            ) WHERE {VALID}
        ) WHERE n = 1
    """


def _summary(engine: Engine) -> str:
    return f"""
        CREATE TABLE {_name(engine, SUMMARY.name)} USING iceberg PARTITIONED BY (days(transaction_date)) {_properties(SUMMARY)} AS
        SELECT transaction_date, currency, count(1) AS transactions, count_if(status = 'APPROVED') AS approved,
               count_if(status = 'DECLINED') AS declined, sum(amount) AS gross_amount,
               sum(if(status = 'APPROVED', amount, 0)) AS approved_amount, avg(amount) AS average_amount,
               count(DISTINCT customer_id) AS distinct_customers, count(DISTINCT merchant_id) AS distinct_merchants
        FROM {_name(engine, CLEAN.name)} GROUP BY transaction_date, currency
    """


def _profiles(engine: Engine) -> str:
    return f"""
        CREATE TABLE {_name(engine, PROFILES.name)} USING iceberg {_properties(PROFILES)} AS
        WITH methods AS (
            SELECT customer_id, max_by(payment_method, n) AS preferred_payment_method FROM (
                SELECT customer_id, payment_method, count(1) AS n FROM {_name(engine, CLEAN.name)}
                GROUP BY customer_id, payment_method
            ) GROUP BY customer_id
        ), currencies AS (
            SELECT customer_id, map_from_entries(collect_list(struct(currency, total))) AS total_amount,
                   map_from_entries(collect_list(struct(currency, average))) AS average_amount FROM (
                SELECT customer_id, currency, sum(amount) AS total, avg(amount) AS average
                FROM {_name(engine, CLEAN.name)} GROUP BY customer_id, currency
            ) GROUP BY customer_id
        )
        SELECT customer_id, min(transaction_date) AS first_transaction_date,
               max(transaction_date) AS last_transaction_date, count(1) AS transactions,
               count_if(status = 'APPROVED') AS approved, count_if(status = 'DECLINED') AS declined,
               any_value(total_amount) AS total_amount, any_value(average_amount) AS average_amount,
               any_value(preferred_payment_method) AS preferred_payment_method
        FROM {_name(engine, CLEAN.name)} JOIN methods USING (customer_id) JOIN currencies USING (customer_id)
        GROUP BY customer_id
    """


def checksum(engine: Engine, table: str) -> tuple:
    """Return values that identify differences between summaries."""
    row = engine.sql(CHECKSUM.format(table=_name(engine, table))).first()
    assert row is not None
    return tuple(row)


def measure_compilers(homes: Homes, title: str, rounds: int) -> dict[str, list[Measured]]:
    """Compare cold loads with only Java's first compiler and with both, see `jvm_compilers`."""

    def load(java_options: Sequence[str]) -> Times:
        settings = homes.fresh()
        env = os.environ | {
            "LAKEHOUSE_HOME": str(settings.home),
            "LAKEHOUSE_SPARK_MEMORY": MEMORY,
            "JAVA_TOOL_OPTIONS": " ".join(java_options),
        }
        program = str(Path(sys.executable).with_name("lakehouse"))
        took = times_of([program, "ingest", FEED.name], env)
        shutil.rmtree(settings.home)
        return took

    ways = [
        TimedWay("Java's first compiler alone", lambda: load(FIRST_COMPILER)),
        TimedWay(
            "both compilers, as on much data",
            lambda: load(()),
            wall_target=TARGETS["both compilers"],
        ),
    ]
    return compare_times(title, ways, rounds=rounds, warm_ups=0)


def measure_load(
    homes: Homes, rounds: int
) -> tuple[list[Measured], list[Settings], list[Settings]]:
    """Compare the loads; return the homes of the script and of Dagster.

    At least two of each; they are created outside of the measured time.
    """
    of_script = [homes.fresh() for _ in range(rounds + 1)]
    of_dagster = [homes.fresh() for _ in range(rounds + 1)]
    next_of_script, next_of_dagster = iter(of_script), iter(of_dagster)
    measured = compare(
        [
            Way("a plain PySpark script", lambda: plain(next(next_of_script))),
            Way(
                "through Dagster, with all rules",
                lambda: through_dagster(next(next_of_dagster)),
                TARGETS["load through Dagster"],
            ),
        ],
        rounds=rounds,
        warm_ups=1,
    )
    return measured, of_script, of_dagster


def compare_bytes(script: Settings, dagster: Settings) -> Figure:
    """Return the stored bytes of a load relative to the script.

    :raises AssertionError: the files are written with different properties.
    """
    stored = {}
    for settings in (script, dagster):
        engine = open_engine(settings)
        stored[settings.home] = 0
        for table in BOTH_LOAD:
            check_files(engine, table)
            stored[settings.home] += _data_bytes(engine, table.name)
    ratio = stored[dagster.home] / stored[script.home]
    return Figure("bytes in bronze, silver and gold, of the plain script's", ratio)


def check_files(engine: Engine, table: IcebergTable) -> None:
    """Check that the files of a table match its declaration.

    A Parquet file contains its codec; the level is only in the table properties.
    """
    loaded = engine.catalog.load(table.name)
    for name, value in file_properties(table).items():
        assert loaded.properties.get(name) == value, (table.name, name, loaded.properties)
    files = [task.file.file_path for task in loaded.scan().plan_files()]
    assert files, f"{table.name} has no files"
    for file in files:
        metadata = pq.ParquetFile(file.removeprefix("file://")).metadata
        codec = metadata.row_group(0).column(0).compression
        assert codec == CODEC, f"{file} is written with {codec} instead of {CODEC}"


class Late:
    """Delivers files of new transactions with old dates."""

    def __init__(self, header: str, lines: Sequence[str]) -> None:
        """Use the lines of a file as templates."""
        self._header, self._lines = header, lines

    @classmethod
    def of_one_day(cls, sample: Path) -> "Late":
        """Use rows of the day in the file name, which is the easiest case."""
        header, *lines = sample.read_text(encoding="utf-8").splitlines()
        day = sample.name.removeprefix("bnpl_").removesuffix(".csv")
        return cls(header, [line for line in lines if f",{day}," in line][:LATE_ROWS])

    @classmethod
    def of_several_days(cls, sample: Path) -> "Late":
        """Use the first rows of a file: most of its day, some earlier days, some invalid rows."""
        header, *lines = sample.read_text(encoding="utf-8").splitlines()
        return cls(header, lines[:LATE_ROWS])

    def deliver(self, settings: Settings) -> bool:
        """Ingest a file with new transactions."""
        rows = []
        for line in self._lines:
            _, other_columns = line.split(",", 1)
            rows.append(f"{next(_NEW_IDS)},{other_columns}")
        file = settings.home / FEED.inbox / f"late{next(_NEW_IDS)}.csv"
        file.write_text("\n".join([self._header, *rows]), encoding="utf-8")
        return ingest(definitions, TABLES, settings, FEED).success


_NEW_IDS = count(10**17)
"""Higher than the ids of generated transactions."""


def measure_late(
    settings: Settings, one_day: Late, several_days: Late, rounds: int
) -> list[Measured]:
    """Compare a recompute of all days with late files; the home has had none before."""

    def recompute() -> bool:
        last = FIRST + timedelta(days=DAYS - 1)
        everything = [CLEAN.name, FIRST.isoformat(), last.isoformat()]
        return backfill(definitions, settings, *everything).success

    assert recompute()
    return compare(
        [
            Way("all days computed anew", recompute),
            Way(
                f"a late file of {LATE_ROWS} rows, all of one day (the easiest case)",
                lambda: one_day.deliver(settings),
                TARGETS["late file of one day"],
                times=5,
            ),
            Way(
                f"a late file of {LATE_ROWS} rows of several days, as generated",
                lambda: several_days.deliver(settings),
                TARGETS["late file of several days"],
                times=5,
            ),
        ],
        rounds=rounds,
        warm_ups=0,
    )


def measure_history(short: Settings, long: Settings, late: Late) -> list[Measured]:
    """Compare a late file on a tenth of the history and on all of it; both contain the day.

    Neither has had late files: each leaves small files in the profiles, which slow the next.
    """
    return compare(
        [
            Way("a late file on a tenth of the history", lambda: late.deliver(short)),
            Way(
                "the same on all of it",
                lambda: late.deliver(long),
                TARGETS["late file on a long history"],
            ),
        ],
        rounds=3,
        warm_ups=1,
    )


def sizes(settings: Settings, files: Iterable[Path]) -> list[Figure]:
    """Return stored bytes relative to delivered bytes."""
    engine = open_engine(settings)
    delivered = sum(file.stat().st_size for file in files)
    data = {name: _data_bytes(engine, name) for name in engine.catalog.tables()}
    # Late enough that the policy expires the snapshots of the loads.
    later = datetime.now(UTC) + DEFAULTS.keep_snapshots_for + timedelta(hours=1)
    keep_up(engine, data, later)
    metadata = sum(file.size_bytes for name in data for file in metadata_files(engine, name))
    return [
        Figure(
            "bytes in silver, of the delivered CSV",
            data[CLEAN.name] / delivered,
            TARGETS["bytes in silver"],
        ),
        Figure(
            "metadata after upkeep, of the data",
            metadata / sum(data.values()),
            TARGETS["bytes of metadata"],
        ),
        *(_updated(engine, mode) for mode in ("copy-on-write", "merge-on-read")),
    ]


def _updated(engine: Engine, mode: str) -> Figure:
    """Update every hundredth profile."""
    table = replace(
        PROFILES,
        name=f"bench.profiles_{mode.replace('-', '_')}",
        row_level=mode,
        write=Merge(on=["customer_id"]),
        columns=[column for column in PROFILES.columns if column.name != "updated_at"],
        # The rules compare profiles with transactions, which do not change here.
        rules=(),
    )
    source = engine.spark.table(_name(engine, PROFILES.name)).drop("updated_at")
    write(engine, table, lambda: source)
    before = _data_bytes(engine, table.name)
    changed = source.where("customer_id % 100 = 7").selectExpr(
        *(
            f"{name} + 1 AS {name}" if name == "transactions" else name
            for name in table.column_names
        )
    )
    published = write(engine, table, lambda: changed)
    return Figure(
        f"bytes added by an update of 1 % of rows, {mode}", published.added_bytes / before
    )


def _data_bytes(engine: Engine, table: str) -> int:
    main = read_history(engine, table).main
    return main.count("total-files-size") if main else 0


def main(rounds: int, millions: float) -> None:
    """Run all parts; exit with 1 if a limit is exceeded."""
    environment = conditions()
    title = f"{millions:g} million transactions, from files to gold"
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        rows_a_day = int(millions * 1_000_000 / DAYS)
        generated = generate(folder / "files", FIRST, DAYS, rows_a_day, seed=1)
        show(f"{len(generated.files)} files of {rows_a_day} rows are generated")
        homes = Homes(folder, generated.files)
        # Before this process starts Spark.
        parts = measure_compilers(homes, f"{title}, cold", rounds)
        measured, (script, *_), (kept, long, *_) = measure_load(homes, rounds)
        parts[title] = measured
        ratios = [compare_bytes(script, kept)]
        sample = generated.files[DAYS // 20]
        one_day, several_days = Late.of_one_day(sample), Late.of_several_days(sample)
        short = Homes(folder / "short", generated.files[: DAYS // 10]).fresh()
        through_dagster(short)
        history = "A late file of one day (the easiest case) and the length of history"
        parts[history] = measure_history(short, long, one_day)
        parts["What comes late"] = measure_late(kept, one_day, several_days, rounds)
        ratios += sizes(kept, generated.files)
    sys.exit(0 if report("bnpl", environment, parts, {"Bytes": ratios}) else 1)


if __name__ == "__main__":
    parser = options(__doc__, rounds=2)
    parser.add_argument("--millions", type=float, default=5.0)
    arguments = parser.parse_args()
    main(arguments.rounds, arguments.millions)
