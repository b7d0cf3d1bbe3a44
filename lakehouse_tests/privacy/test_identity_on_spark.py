"""People in tables that Spark wrote: under delete files, on a branch, and in an old snapshot."""

import pytest

from lakehouse.assets.audit.gdpr_actions import TABLE as ACTIONS
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.privacy.audit_chain import AuditedAction, append_actions, verify_chain
from lakehouse.privacy.export import export_people
from lakehouse.privacy.holders import find_subjects
from lakehouse.privacy.identity import Named, find_people
from lakehouse.settings import Settings
from lakehouse.tables.table import Column, IcebergTable, Merge

pytestmark = pytest.mark.spark

CUSTOMERS = IcebergTable(
    "silver.customers",
    "Customers.",
    [
        Column("customer_id", "bigint"),
        Column("email", "string", personal=True),
        Column("day", "date"),
    ],
    write=Merge(on="customer_id"),
    partitioning=["days(day)"],
    subject="customer_id",
)


def test_a_person_is_found_wherever_iceberg_still_has_them(engine: Engine) -> None:
    name = engine.catalog.sql_name(CUSTOMERS.name)
    engine.sql(f"CREATE NAMESPACE IF NOT EXISTS {engine.catalog.name}.silver")
    engine.sql(
        f"CREATE TABLE {name} (customer_id bigint, email string, day date) USING iceberg"
        " PARTITIONED BY (days(day)) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    day = "DATE '2026-01-01'"
    engine.sql(
        f"INSERT INTO {name} VALUES (7, 'under@delete.file', {day}), (8, 'b@x.org', {day}),"
        f" (9, 'c@x.org', {day})"
    )
    engine.sql(f"DELETE FROM {name} WHERE customer_id = 7")
    engine.sql(f"ALTER TABLE {name} CREATE BRANCH refused_1")
    branch = engine.catalog.sql_name(CUSTOMERS.name, branch="refused_1")
    engine.sql(f"INSERT INTO {branch} VALUES (7, 'on@a.branch', {day})")
    engine.sql(f"INSERT INTO {name} VALUES (7, 'old@snapsh.ot', {day})")
    engine.sql(f"INSERT OVERWRITE {name} VALUES (7, 'now@main', {day}), (8, 'b@x.org', {day})")

    tables = {CUSTOMERS.name: CUSTOMERS}
    subjects = find_subjects(tables, {})
    (identity,) = find_people(engine, subjects, [Named("customer_id", "7")])
    assert identity.person.personal["email"] == {
        "under@delete.file",
        "on@a.branch",
        "old@snapsh.ot",
        "now@main",
    }
    exported = export_people(engine, subjects, [identity], tables)
    assert [held.row["email"] for held in exported.rows] == ["now@main"]


def test_spark_reads_the_chain_and_rewrites_its_files(
    engine: Engine, settings: Settings
) -> None:
    for number in range(3):
        action = AuditedAction("verified", f"R-{number}", "me")
        append_actions(settings, engine, ACTIONS, [action], f"R-{number}/verified")
    name = engine.catalog.sql_name(ACTIONS.name)
    engine.sql(
        f"CALL {engine.catalog.name}.system.rewrite_data_files(table => '{ACTIONS.name}',"
        " options => map('rewrite-all', 'true'))"
    )
    assert engine.sql(f"SELECT max(sequence) FROM {name}").first()[0] == 3
    assert verify_chain(settings, engine, ACTIONS).is_whole
    engine.sql(f"UPDATE {name} SET who = 'you' WHERE sequence = 2")
    assert verify_chain(settings, engine, ACTIONS).broken_at == 2
