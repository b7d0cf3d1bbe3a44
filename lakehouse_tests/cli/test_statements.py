"""Statements of `lakehouse sql` as text: their ends, and the tables that they name."""

import pytest

from lakehouse.cli.tables.sql import lockable_tables, require_queries, split
from lakehouse.errors import UsageError
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit

COLUMNS = [Column("id", "bigint")]
FRUITS = IcebergTable("silver.fruits", "", COLUMNS, Append(once_by=()), rules=[not_null("id")])
OTHER = IcebergTable("gold.other", "", COLUMNS, Append(once_by=()))
QUARANTINE = "silver.fruits_quarantine"


TABLES = {table.name: table for table in (FRUITS, FRUITS.quarantine, OTHER) if table}


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        (";;  ;", []),
        ("", []),
        ("-- nothing; to run", []),
        ("SELECT ';'; SELECT \";\"; SELECT `;`", ["SELECT ';'", 'SELECT ";"', "SELECT `;`"]),
        ("SELECT 'it''s; so'", ["SELECT 'it''s; so'"]),
        (r"SELECT 'a\';b'; SELECT 2", [r"SELECT 'a\';b'", "SELECT 2"]),
        (r"SELECT r'a\'; SELECT 2", [r"SELECT r'a\'", "SELECT 2"]),
        ("SELECT 1 -- one; two\n; SELECT 2", ["SELECT 1", "SELECT 2"]),
        (
            "SELECT /* a; /* b; */ c; */ 1; SELECT 2",
            ["SELECT /* a; /* b; */ c; */ 1", "SELECT 2"],
        ),
        ("-- first\nSELECT 1", ["SELECT 1"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2; END", ["BEGIN SELECT 1; SELECT 2; END"]),
    ],
)
def test_a_script_is_split_at_the_semicolons_that_end_statements(script, statements):
    assert split(script) == statements


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO silver.fruits VALUES (1)",
        "insert overwrite table lakehouse.silver.`fruits` select 1",
        "WITH a AS (SELECT 1) INSERT INTO silver.fruits SELECT * FROM a",
        "ALTER TABLE t.x RENAME TO silver.fruits",
        "DROP TABLE IF EXISTS lakehouse.silver.fruits PURGE",
        "CALL `system`.`rewrite_data_files`(table => '`silver`.`fruits`')",
        "BEGIN CALL system.expire_snapshots('silver.fruits'); END",
        "INSERT INTO fruits VALUES (1)",
    ],
)
def test_a_write_locks_the_declared_tables_that_it_names(statement: str) -> None:
    assert lockable_tables(TABLES, [statement]) == ["silver.fruits"]


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM silver.fruits", "SET spark.sql.shuffle.partitions = 2"]
)
def test_other_statements_lock_no_table(statement: str) -> None:
    assert lockable_tables(TABLES, [statement]) == []


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM {QUARANTINE} WHERE true",
        "delete from lakehouse.silver.`fruits_quarantine`",
        f"TRUNCATE TABLE {QUARANTINE}",
        f"DROP TABLE IF EXISTS {QUARANTINE}",
        f"INSERT OVERWRITE {QUARANTINE} SELECT * FROM {QUARANTINE}",
        f"MERGE INTO {QUARANTINE} USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"CREATE OR REPLACE TABLE {QUARANTINE} AS SELECT 1 AS id",
        f"CALL system.rollback_to_snapshot('{QUARANTINE}', 1)",
        f"ALTER TABLE {QUARANTINE} RENAME TO t.other",
        f"EXECUTE IMMEDIATE 'DELETE FROM {QUARANTINE}'",
    ],
)
def test_a_statement_that_can_delete_quarantined_rows_is_rejected(statement: str) -> None:
    with pytest.raises(UsageError, match="quarantine clear"):
        lockable_tables(TABLES, ["SELECT 1", statement])


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO {QUARANTINE} SELECT replace(a, 'b', 'c')",
        f"MERGE INTO {QUARANTINE} USING s ON true WHEN NOT MATCHED THEN INSERT *",
        f"CALL system.rewrite_data_files('{QUARANTINE}')",
    ],
)
def test_a_statement_that_retains_quarantined_rows_can_run(statement: str) -> None:
    assert lockable_tables(TABLES, [statement]) == [QUARANTINE]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM silver.fruits JOIN x USING (id) WHERE map('a', 1)['a'] = 1",
        "SELECT * FROM silver.fruits WHERE note LIKE '%map using%' -- transform using",
        "values (1)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(SELECT 1)",
        "FROM silver.fruits |> SELECT id",
        "SHOW TABLES",
        "DESCRIBE silver.fruits",
        "EXPLAIN EXTENDED DELETE FROM silver.fruits",
        "USE silver",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "CALL lakehouse.system.create_changelog_view(table => 'silver.fruits')",
    ],
)
def test_a_query_needs_no_option(statement: str) -> None:
    require_queries([statement])


@pytest.mark.parametrize(
    "statement",
    [
        "SELEC 1",
        "SET a = b",
        "DELETE\u200bFROM silver.fruits",
        "EXPLAIN EXECUTE IMMEDIATE 'DELETE FROM t'",
        "CREATE TEMPORARY VIEW v USING csv OPTIONS (path '/x')",
        "CREATE VIEW t.v AS SELECT 1",
        "CALL system.remove_orphan_files(table => 't.x')",
        "SELECT TRANSFORM(id) USING 'rm -rf' AS (x) FROM silver.fruits",
        "FROM t MAP id /* */ u\u017fing 'rm'",
    ],
)
def test_what_is_no_query_needs_the_option(statement: str) -> None:
    with pytest.raises(UsageError, match="--write"):
        require_queries([statement])
