"""Personal values, in their own or in a wrong column, are in no file, log or message."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lakehouse.alerts.alerts_sensor import detect_and_dispatch
from lakehouse.alerts.monitor_context import MonitorContext
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.rules.rows import accepted, castable, excluded
from lakehouse.iceberg.rules.unique_and_references import unique
from lakehouse.orchestration.asset_specs import quarantine_spec
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.frames import frame_of

pytestmark = pytest.mark.spark
_DATA = ("warehouse", "archive", "rejected", "inbox")


TABLE = IcebergTable(
    "silver.people",
    "People.",
    [
        Column("contact", "string", personal=True),
        Column("subject", "bigint"),
        Column("number", "bigint"),
        Column("amount", "decimal(10,2)"),
        Column("status", "string"),
        Column("note", "map<string,string>"),
    ],
    write=Merge(on=("number",)),
    subject="subject",
    rules=[
        castable("amount", "decimal(10,2)"),
        accepted("status", ["NEW"], on_failure="warn"),
        excluded("number", [13], on_failure="block"),
        unique("number"),
    ],
)


class People:
    """Rows of people with unique ids and addresses, in right and in wrong columns."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.secrets: list[str] = []

    def row(self, number: int, **wrong: str) -> tuple[Any, ...]:
        """Return a row of a new person; wrong values can contain its `{id}` and `{mail}`."""
        at = len(self.secrets)
        person = {"id": str(770_000_000 + at), "mail": f"secret{at}@example.org"}
        self.secrets += person.values()
        texts = {"amount": "1.50", "status": "NEW", "note": "", **wrong}
        values = {name: text.format(**person) for name, text in texts.items()}
        note = {values["note"]: values["note"]}
        return (
            person["mail"],
            int(person["id"]),
            number,
            values["amount"],
            values["status"],
            note,
        )

    def frame(self, *rows: tuple[Any, ...]) -> Any:
        """Return rows as a frame, with amounts as text."""
        types = {column.name: column.type for column in TABLE.columns} | {"amount": "string"}
        schema = ", ".join(f"{name} {type_}" for name, type_ in types.items())
        return frame_of(self.engine.spark, schema, rows)


def with_column(changed: str, sql: str) -> list[str]:
    """Return the columns to select, with one of them computed by SQL."""
    return [f"{sql} AS {name}" if name == changed else name for name in TABLE.column_names]


@pytest.mark.long
def test_no_file_log_or_message_has_personal_values(
    embedded_engine: Engine,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
    caplog: Any,
) -> None:
    people = People(embedded_engine)
    spark_log = Path(
        embedded_engine.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    )
    spark_log = spark_log.with_name("logs") / "spark.log"
    log_start = spark_log.stat().st_size
    failing = "raise_error(concat(contact, ' ', CAST(subject AS STRING)))"
    computed: list[Callable[[], Any]] = [
        lambda: people.frame(
            people.row(1),
            people.row(2, amount="{mail}", note="{id}"),
            people.row(3, status="{id}"),
        ),
        lambda: people.frame(
            people.row(13, status="{mail}"), people.row(14, amount="{id}{id}")
        ),
        lambda: people.frame(people.row(5)).selectExpr(*with_column("status", failing)),
        lambda: people.frame(people.row(6)).selectExpr(
            *with_column("number", "CAST(contact AS BIGINT)")
        ),
        lambda: int(people.row(7)[0]),
    ]
    results = [run(people, settings, compute) for compute in computed]
    assert [succeeded for succeeded, _ in results] == [True, False, False, False, False]
    printed = capfd.readouterr()
    texts = {
        "messages": str([message for _, message in results]),
        "printed": printed.out + printed.err,
        "logged": caplog.text,
        "Spark's log": spark_log.read_bytes()[log_start:].decode(errors="replace"),
    }
    files = (path for path in settings.home.rglob("*") if path.is_file())
    texts |= {
        str(path): path.read_bytes().decode(errors="replace")
        for path in files
        if path.relative_to(settings.home).parts[0] not in _DATA
    }
    assert any("masked:" in text for text in texts.values()) and any(
        "alerts.jsonl" in name for name in texts
    )
    assert {
        name: secret
        for name, text in texts.items()
        for secret in people.secrets
        if secret in text
    } == {}


def run(people: People, settings: Settings, compute: Callable[[], Any]) -> tuple[bool, Any]:
    """Compute the table, and run a round of alerts."""

    @iceberg_asset(TABLE)
    def computed() -> Any:
        return compute()

    resources = {"io_manager": IcebergIOManager(engine=people.engine, declared={})}
    definitions = dg.Definitions(assets=[computed, quarantine_spec(TABLE)], resources=resources)
    with open_instance(settings) as instance:
        done = materialize(definitions, instance, dg.AssetSelection.all())
        declared_now = {TABLE.name: TABLE}
        graph = definitions.resolve_asset_graph()
        context = MonitorContext(instance, graph, declared_now, (), settings, datetime.now(UTC))
        detect_and_dispatch(context, logging.getLogger("lakehouse.alerts"))
    return done.success, (done.messages, [check.description for check in done.checks])
