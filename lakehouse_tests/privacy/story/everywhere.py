"""A lakehouse in which customers stand in every class of place, filled by the runs and writes that
a user would start, on either catalog.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

from lakehouse.alerts.alerts_sensor import NAME as ALERTS
from lakehouse.assets.bronze.bnpl_transactions_raw import TABLE as RAW
from lakehouse.definitions import FEEDS, PROJECT, TABLES, definitions
from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.delete_rows import count_rows
from lakehouse.iceberg.metadata.table_locations import list_location
from lakehouse.iceberg.read.stale_tables import is_stale
from lakehouse.iceberg.rules.rows import expression
from lakehouse.iceberg.values.write_result import Refused
from lakehouse.iceberg.write.write_audit_publish import write
from lakehouse.ingestion.feed_runs import IngestResult, ingest
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.deployment import open_engine
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure import Erasure, How
from lakehouse.privacy.holders import find_subjects
from lakehouse.privacy.identity import Named, find_people
from lakehouse.privacy.proof import prove
from lakehouse.privacy.run_erasure import erase
from lakehouse.privacy.verifier.report import Report
from lakehouse.quality.check_jobs import check
from lakehouse.quality.row_accounting import NAME as ROWS_CHECK
from lakehouse.settings import Settings
from lakehouse.spark.spark_folders import temporary_folder
from lakehouse.storage.stores import open_store
from lakehouse.tables.person import Person
from lakehouse.tables.table import Append, Column, IcebergTable
from lakehouse.tables.table_properties import COPY_ON_WRITE, MERGE_ON_READ, ROW_LEVEL_PROPERTIES
from lakehouse_tests.assets.deliveries import CLEAN, HEADER, PROFILES, QUARANTINE
from lakehouse_tests.iceberg.upkeep.tables import make_older_on_s3
from lakehouse_tests.privacy.story.customers import PARTS, Customers, email_of, file_of, id_of

FEED = FEEDS["bnpl"]
FAR_PAST = 1_700_000_000


def _visits(name: str, row_level: Any) -> IcebergTable:
    columns = [
        Column("customer_id", "bigint"),
        Column("email", "string", personal=True),
        Column("visits", "bigint"),
        Column("part", "int"),
    ]
    return IcebergTable(
        name,
        "Who came how often.",
        columns,
        write=Append(once_by=()),
        partitioning=["part"],
        row_level=row_level,
        subject="customer_id",
    )


VISITS = (
    _visits("silver.copied_visits", COPY_ON_WRITE),
    _visits("silver.merged_visits", MERGE_ON_READ),
)
"""A table of each row-level mode, which SQL of the user's own fills."""
OF_PEOPLE = (RAW.name, CLEAN, QUARANTINE, PROFILES)


@dg.op
def send() -> None:
    # What a project raises itself is told as it is.
    raise LakehouseError(f"{email_of(0)} of customer {id_of(0)} could not be reached.")


@dg.job
def newsletter() -> None:
    send()


@dataclass
class Everywhere:
    """A home, and a bucket where there is one, with customers everywhere."""

    settings: Settings
    customers: Customers

    @cached_property
    def engine(self) -> Engine:
        """The engine of the deployment."""
        return open_engine(self.settings)

    @property
    def erasable(self) -> Erasable:
        """What there is to erase from: the project's own tables, and those of visits."""
        own = PROJECT.erasable(self.settings, self.engine)
        tables = {**TABLES, **{table.name: table for table in VISITS}}
        return replace(own, tables=tables, subjects=find_subjects(tables, own.sources))

    @property
    def tables_of_people(self) -> list[str]:
        """The names of the tables that have a row for each customer, or several."""
        return [*OF_PEOPLE, *(table.name for table in VISITS)]

    @property
    def persons(self) -> list[Person]:
        """Those who are to be erased, with all that is known of them."""
        found = find_people(self.engine, self.erasable.subjects, self.named)
        return [identity.person for identity in found]

    @property
    def named(self) -> list[Named]:
        """Those who are to be erased, as they are named: one by the address."""
        ids = [Named("customer_id", one) for one in self.customers.erased_ids[1:]]
        return [Named("customer_email", email_of(0)), *ids]

    def fill(self) -> None:
        """Put the customers everywhere."""
        self.put("inbox/bnpl/all.csv", self.customers.file_of_all)
        assert self.ingest().success
        self._fill_visits()
        self.put("inbox/bnpl/later.csv", self.customers.later_file)
        rejected = file_of([f"{self.customers.row(0, '2026-03-01')},x"], f"{HEADER},note")
        self.put("inbox/bnpl/bad.csv", rejected)
        result = self.ingest()
        assert len(result.rejected) == 1 and all(run.success for run in result.runs)
        self._refuse_rows()
        self._lose_commits()
        self._fail_run()
        self._leave_rows_of_processes()
        self.look_for_alerts()
        waiting = [self.customers.row(number, "2026-03-02") for number in (0, 1)]
        self.put("inbox/bnpl/waiting.csv", file_of(waiting))

    def ids_in(self, table: str) -> Counter[str]:
        """Return how many rows of those who are to be erased a table has, by id."""
        ids = self.engine.catalog.load(table).scan(selected_fields=("customer_id",)).to_arrow()
        texts = map(str, ids.column("customer_id").to_pylist())
        return Counter(one for one in texts if one in self.customers.erased_ids)

    def put(self, key: str, text: str) -> None:
        """Deliver a file, so long ago that nobody waits for more of it."""
        open_store(self.settings).write_text(key, text)
        if self.settings.deployment == "local":
            os.utime(self.settings.home / key, (FAR_PAST, FAR_PAST))

    def ingest(self) -> IngestResult:
        """Ingest what waits."""
        return ingest(definitions, TABLES, self.settings, FEED)

    def look_for_alerts(self) -> None:
        """Tell what is wrong by now, as the sensor does."""
        repository = definitions(lambda: self.settings).get_repository_def()
        with open_instance(self.settings) as instance:
            context = dg.build_sensor_context(instance=instance, repository_def=repository)
            repository.get_sensor_def(ALERTS).evaluate_tick(context)

    def prove(self) -> Report:
        """Search everything for those who are to be erased."""
        return prove(self.erasable, self.persons)

    def erase(self) -> Erasure:
        """Erase them by one request."""
        return erase(self.erasable, "R-17", self.named, How("me", now=True))

    def failed_checks(self) -> list[str]:
        """Evaluate all checks of the project's tables; return those that do not pass."""
        tables = [name for name in TABLES if self.engine.catalog.has(name)]
        run = check(definitions, self.settings, tables)
        assert run.success, (run.messages, run.message)
        assert ROWS_CHECK in {result.name for result in run.checks}
        return [f"{one.table}: {one.name}" for one in run.checks if not one.passed]

    def stale_tables(self) -> list[str]:
        """Return the project's tables that have yet to be computed from what there is."""
        graph = asset_graph(definitions(lambda: self.settings))
        names = [table_name(key) for key in graph.executable_asset_keys]
        return [
            name
            for name in sorted(names)
            if is_stale(self.engine, name, Downstream(graph, name).read_now(name))
        ]

    def refs_with_them(self, persons: list[Person]) -> set[str]:
        """Return the branches and tags, by table, that have rows of some people."""
        found = set()
        for holder, theirs in self.erasable.holders(persons):
            table = self.erasable.tables[holder.table]
            found |= {f"{table.name} {ref}" for ref in count_rows(self.engine, table, theirs)}
        return found

    def rows_of_others(self) -> dict[str, Counter[str]]:
        """Return the rows of everyone else, by table."""
        return {name: self._rows_of_others(name) for name in self.tables_of_people}

    def _rows_of_others(self, name: str) -> Counter[str]:
        rows = self.engine.catalog.load(name).scan().to_arrow().to_pylist()
        erased = set(self.customers.erased_ids)
        others = [row for row in rows if str(row["customer_id"]) not in erased]
        return Counter(repr(sorted(row.items())) for row in others)

    def paths_of_others(self) -> set[str]:
        """Return the data files in which none of them is, not even in rows that are deleted."""
        erased = set(self.customers.erased_ids)
        paths: set[str] = set()
        for name in self.tables_of_people:
            loaded = self.engine.catalog.load(name)
            for task in loaded.scan().plan_files():
                with loaded.io.new_input(task.file.file_path).open() as file:
                    ids = pq.read_table(file, columns=["customer_id"]).column(0)
                if erased.isdisjoint(map(str, ids.to_pylist())):
                    paths.add(task.file.file_path)
        return paths

    def paths(self) -> set[str]:
        """Return all data files of the tables that hold people."""
        paths: set[str] = set()
        for name in self.tables_of_people:
            scan = self.engine.catalog.load(name).scan()
            paths |= {task.file.file_path for task in scan.plan_files()}
        return paths

    def _fill_visits(self) -> None:
        raw = self.engine.catalog.sql_name(RAW.name)
        for table in VISITS:
            name = self.engine.catalog.sql_name(table.name)
            modes = ", ".join(f"'{mode}'='{table.row_level}'" for mode in ROW_LEVEL_PROPERTIES)
            # A file by itself for each partition, and no statistics of addresses.
            self.engine.sql(
                f"CREATE TABLE {name} (customer_id bigint, email string, visits bigint, part int)"
                f" USING iceberg PARTITIONED BY (part) TBLPROPERTIES ({modes})"
            )
            self.engine.sql(
                f"INSERT INTO {name} SELECT CAST(customer_id AS bigint), max(customer_email),"
                f" count(*), CAST(CAST(customer_id AS bigint) % {PARTS} AS int) FROM {raw}"
                " GROUP BY customer_id ORDER BY 4"
            )
            self.engine.sql(f"ALTER TABLE {name} CREATE TAG month_end")
            # Of one who is erased and of one who remains, so that old files have them.
            both = f"{id_of(0)}, {id_of(PARTS)}"
            self.engine.sql(
                f"UPDATE {name} SET visits = visits + 1 WHERE customer_id IN ({both})"
            )

    def _refuse_rows(self) -> None:
        """Let a rule refuse rows of theirs, which stay on a branch."""
        from pyspark.sql.functions import lit

        nobody = expression("nobody", "false", columns=[], on_failure="block")
        blocked = replace(RAW, rules=[nobody])
        frame = self.engine.spark.table(RAW.name).where(f"customer_id = '{id_of(0)}'")
        other = frame.withColumn("_source_sha256", lit("0" * 64))
        assert isinstance(write(self.engine, blocked, lambda: other), Refused)

    def _lose_commits(self) -> None:
        """Leave the files of commits to the tables of visits that no catalog points at, as a
        process does that is killed before the last step.
        """
        client = self.engine.catalog.client
        for table in VISITS:
            loaded = self.engine.catalog.load(table.name)
            before = loaded.metadata_location
            row = {"customer_id": id_of(0), "email": email_of(0), "visits": 1, "part": 0}
            rows = pa.Table.from_pylist([row], loaded.schema().as_arrow())
            listed = list_location(loaded)
            loaded.append(rows, snapshot_properties={"asked-by": email_of(0)})
            if self.settings.deployment == "aws":
                # Those of today may be of a write on another host.
                for key, file in list_location(loaded).items():
                    if key not in listed:
                        make_older_on_s3(file.path, days=2)
            client.drop_table(table.name)
            client.register_table(table.name, before)

    def _fail_run(self) -> None:
        """Let a run fail on one of them, and keep what it printed, as the UI does."""
        with open_instance(self.settings) as instance:
            failed = newsletter.execute_in_process(instance=instance, raise_on_error=False)
        folder = self.settings.dagster_home / "storage" / failed.run_id / "compute_logs"
        folder.mkdir(parents=True)
        (folder / "send.err").write_text(f"{email_of(0)} could not be reached\n")

    def _leave_rows_of_processes(self) -> None:
        """Leave what a Spark that was killed does: a log, what it spilled, what it staged."""
        process, _, _ = temporary_folder(self.settings).name.rpartition("-")
        spilled = self.settings.home / "tmp" / f"{process}-1" / "blockmgr-1" / "shuffle_1.data"
        log = self.settings.home / "logs" / "spark.log"
        staged = self.settings.home / "staging" / "bnpl" / "1" / "rows" / "0.parquet"
        for file in (spilled, log, staged):
            file.parent.mkdir(parents=True, exist_ok=True)
        spilled.write_bytes(email_of(0).encode())
        log.write_text(f"ERROR [CAST_INVALID_INPUT] The value '{email_of(0)}' cannot be cast\n")
        columns = {"customer_id": [str(id_of(0))], "customer_email": [email_of(0)]}
        pq.write_table(pa.table(columns), staged)


def files_by_place(report: Report) -> Mapping[str, int]:
    """Return in how many files of each class of place somebody was found."""
    files = {(finding.place, finding.file) for finding in report.findings}
    return Counter(place for place, _ in files)
