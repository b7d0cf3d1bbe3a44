"""People in tables that Spark wrote: under delete files, on a branch, and in an old snapshot."""

import pytest

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.branch import audit_branch
from lakehouse.iceberg.commit.lock import table_lock
from lakehouse.privacy.erasure_search import folders_of_holders, held_columns
from lakehouse.privacy.holders import find_subjects
from lakehouse.privacy.identity import Named, find_people
from lakehouse.privacy.personal_export import export_people
from lakehouse.privacy.run_erasure import require_no_writers
from lakehouse.privacy.verifier.roots import FolderRoot
from lakehouse.privacy.verifier.search import by_values, search
from lakehouse.settings import Settings
from lakehouse.tables.person import Person
from lakehouse.tables.table import Column, IcebergTable, Merge
from lakehouse_tests.privacy.declared_tables import Lakehouse
from lakehouse_tests.privacy.small_lakehouse import declared, personal

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


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_column_whose_name_spark_escapes_is_compared(
    embedded_engine: Engine, settings: Settings, file_format: str
) -> None:
    members = declared(
        f"bronze.members_{file_format}",
        Column("Mitglied-Nr", "decimal(11,2)"),
        personal("E-Mail"),
        subject="Mitglied-Nr",
    )
    name = embedded_engine.catalog.sql_name(members.name)
    embedded_engine.sql(f"CREATE NAMESPACE IF NOT EXISTS {embedded_engine.catalog.name}.bronze")
    embedded_engine.sql(
        f"CREATE TABLE {name} (`Mitglied-Nr` decimal(11,2), `E-Mail` string) USING iceberg"
        f" TBLPROPERTIES ('write.format.default' = '{file_format}')"
    )
    embedded_engine.sql(f"INSERT INTO {name} VALUES (17, 'a@b.c'), (18, 'd@e.f')")
    home = Lakehouse(embedded_engine, settings, members)
    person = Person("Mitglied-Nr", frozenset({"17"}), {"e-mail": frozenset({"A@b.c"})})

    columns = held_columns(home.erasable, folders_of_holders(home.erasable, {}))

    report = search([FolderRoot(settings.home)], by_values([person], columns))

    in_data = {(one.column, one.how) for one in report.findings if "/data/" in one.file}
    assert in_data >= {("Mitglied-Nr", "column"), ("E-Mail", "column")}


def test_a_branch_of_a_crashed_run_does_not_block_an_erasure_now(
    embedded_engine: Engine, settings: Settings
) -> None:
    orders = declared("gold.orders", Column("customer_id", "bigint"), subject="customer_id")
    home = Lakehouse(embedded_engine, settings, orders)
    home.people.add(orders, (17,))
    with table_lock(embedded_engine, orders.name) as log:
        log.begin("0" * 32)
    branch = audit_branch("0" * 32)
    embedded_engine.sql(
        f"ALTER TABLE {embedded_engine.catalog.sql_name(orders.name)} CREATE BRANCH {branch}"
    )

    require_no_writers(home.erasable)

    assert branch not in embedded_engine.catalog.load(orders.name).metadata.refs
