"""A bronze and a silver table on a Dagster instance of the test."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.metadata.snapshots import read_history
from lakehouse.iceberg.read.inputs import incremental
from lakehouse.iceberg.rules.rows import castable, excluded, not_null
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.asset_specs import quarantine_spec
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.orchestration.runs.run_result import RunResult
from lakehouse.tables.table import Append, Column, IcebergTable, Merge
from lakehouse_tests.frames import frame_of

RAW = IcebergTable(
    "bronze.raw_people",
    "People as delivered.",
    [
        Column("id", "string"),
        Column("name", "string"),
        Column("email", "string", personal=True),
        Column("_source_file", "string"),
        Column("_source_sha256", "string"),
        Column("_source_row", "bigint"),
    ],
    write=Append(),
)
PEOPLE = IcebergTable(
    "silver.people",
    "One row for each name.",
    [
        Column("id", "bigint", "Number."),
        Column("name", "string", "Name; the merge key."),
        Column("email", "string", "Address.", personal=True),
        Column("changed_at", "timestamp"),
    ],
    write=Merge(on=["name"], stamp="changed_at"),
    rules=[
        castable("id", "bigint"),
        not_null("name", on_failure="warn"),
        unique("name"),
        excluded("name", ["nobody"], on_failure="block"),
    ],
    owner="people@example.org",
)


@dataclass
class Project:
    engine: Engine
    instance: dg.DagsterInstance
    delivered: list[tuple[str | None, str | None, str | None]] = field(default_factory=list)
    file: str = "first"
    downstream_runs: int = 0

    @property
    def definitions(self) -> dg.Definitions:
        @iceberg_asset(RAW)
        def raw_people():
            stamped = [
                (*row, self.file, f"sha-{self.file}", at)
                for at, row in enumerate(self.delivered, 1)
            ]
            return frame_of(
                self.engine.spark,
                "id string, name string, email string, _source_file string, _source_sha256"
                " string, _source_row bigint",
                stamped,
            )

        @iceberg_asset(PEOPLE, inputs={"raw_people": incremental("bronze.raw_people")})
        # The names of types are unknown here, as they are under TYPE_CHECKING.
        def people(raw_people: "DataFrame") -> "DataFrame":  # noqa: F821
            return raw_people

        @dg.asset(key=["gold", "after"], deps=[dg.AssetKey(["silver", "people"])])
        def after() -> None:
            self.downstream_runs += 1

        return dg.Definitions(
            assets=[raw_people, people, after, quarantine_spec(PEOPLE)],
            resources=self.resources,
        )

    @property
    def resources(self) -> dict[str, Any]:
        return {"io_manager": IcebergIOManager(engine=self.engine, declared={})}

    def deliver(self, file: str, *rows: tuple[str | None, str | None, str | None]) -> RunResult:
        self.file, self.delivered = file, list(rows)
        return self.run(dg.AssetSelection.all())

    def run(self, selection: dg.AssetSelection, **how: Any) -> RunResult:
        return materialize(self.definitions, self.instance, selection, **how)

    def snapshot_id(self, table: str) -> int:
        return read_history(self.engine, table).main.snapshot_id

    def latest(self, key: Sequence[str]) -> dg.AssetMaterialization:
        return self.instance.get_latest_materialization_event(
            dg.AssetKey(key)
        ).asset_materialization


@pytest.fixture
def instance(settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened


@pytest.fixture
def project(embedded_engine: Engine, instance: dg.DagsterInstance) -> Project:
    return Project(embedded_engine, instance)


@pytest.fixture
def build(embedded_engine: Engine, instance: dg.DagsterInstance) -> Callable[..., RunResult]:
    def run(
        *assets: dg.AssetsDefinition,
        declared: Mapping[str, IcebergTable] = {},
        selection: dg.AssetSelection | None = None,
        **how: Any,
    ) -> RunResult:
        resources = {"io_manager": IcebergIOManager(engine=embedded_engine, declared=declared)}
        definitions = dg.Definitions(assets=assets, resources=resources)
        return materialize(definitions, instance, selection or dg.AssetSelection.all(), **how)

    return run
