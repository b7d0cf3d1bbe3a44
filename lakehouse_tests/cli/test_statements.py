"""Statements of `lakehouse sql` as text: where they end, and which tables they may change."""

import pytest

from lakehouse.cli.sql_text.read_only import require_queries
from lakehouse.cli.sql_text.statements import split
from lakehouse.cli.sql_text.writes import lockable_tables
from lakehouse.errors import UsageError
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.tables.table import Append, Column, IcebergTable

pytestmark = pytest.mark.unit

COLUMNS = [Column("id", "bigint")]
FRUITS = IcebergTable("silver.fruits", "", COLUMNS, Append(once_by=()), rules=[not_null("id")])
OTHER = IcebergTable("gold.other", "", COLUMNS, Append(once_by=()))
QUARANTINE = "silver.fruits_quarantine"


TABLES = {table.name: table for table in (FRUITS, FRUITS.quarantine, OTHER) if table}


def locked(*statements: str) -> list[str]:
    return lockable_tables(TABLES, [*TABLES, "tutorial.t"].__contains__, statements)


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
        ("SELECT $$a;b$$; SELECT $x$;$$;$x$", ["SELECT $$a;b$$", "SELECT $x$;$$;$x$"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2; END", ["BEGIN SELECT 1; SELECT 2; END"]),
        ("SELECT 1 -- one\rFROM x; SELECT 2", ["SELECT 1 -- one\rFROM x", "SELECT 2"]),
    ],
)
def test_a_script_is_split_at_the_semicolons_that_end_statements(
    script: str, statements: list[str]
) -> None:
    assert split(script) == statements


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO silver.fruits VALUES (1)",
        "insert overwrite table lakehouse.silver.`fruits` select 1",
        "INSERT INTO silver.fruits.branch_fix VALUES (1)",
        "INSERT /* into other.t */ INTO -- really\n silver . fruits VALUES (1)",
        "WITH a AS (SELECT 1) INSERT INTO silver.fruits SELECT * FROM a, gold.other",
        "FROM gold.other INSERT INTO silver.fruits SELECT * INSERT INTO t.x SELECT *",
        "UPDATE silver.fruits SET fruit = 'x'",
        "DELETE FROM silver.fruits WHERE fruit IN (SELECT fruit FROM gold.other)",
        "MERGE WITH SCHEMA EVOLUTION INTO silver.fruits USING gold.other ON true WHEN MATCHED"
        " THEN UPDATE SET *",
        "ALTER TABLE other.t RENAME TO silver.fruits",
        "DROP TABLE IF EXISTS lakehouse.silver.fruits PURGE",
        "CREATE OR REPLACE TABLE silver.fruits USING iceberg AS SELECT * FROM gold.other",
        "COMMENT ON COLUMN silver.fruits.id IS 'x'",
        "CALL system.snapshot('other.t', 'silver.fruits')",
        "CALL `system`.`rewrite_data_files`(table => '`silver`.`fruits`')",
        "BEGIN CALL system.expire_snapshots('silver.fruits'); END",
        "INSERT INTO fruits VALUES (1)",
        "\u0131nsert \u0131nto silver.fruits VALUES (1)",
    ],
)
def test_a_write_locks_the_declared_tables_that_it_changes(statement: str) -> None:
    assert locked(statement) == ["silver.fruits"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM silver.fruits",
        "INSERT INTO tutorial.t SELECT * FROM silver.fruits",
        "CREATE TABLE tutorial.copy AS SELECT `delete` FROM silver.fruits",
        "MERGE INTO tutorial.t USING silver.fruits s ON true WHEN MATCHED THEN DELETE",
        "CALL system.ancestors_of('silver.fruits')",
        "CALL system.rewrite_data_files('tutorial.t')",
        "SET spark.sql.shuffle.partitions = 2",
    ],
)
def test_a_statement_that_changes_no_declared_table_locks_none(statement: str) -> None:
    assert locked(statement) == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO IDENTIFIER('silver.' || 'fruits') VALUES (1)",
        "CALL system.rewrite_data_files(table => concat('silver', '.fruits'))",
        "CALL system.expire_snapshots(table => 'silver' || '.fruits')",
        "UPDATE t.some_view SET id = 1",
        r"CALL system.rewrite_data_files(table => 'silver.fruit\u0073')",
    ],
)
def test_a_statement_whose_text_does_not_name_its_table_locks_all(statement: str) -> None:
    assert locked(statement) == ["gold.other", "silver.fruits", QUARANTINE]


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM {QUARANTINE} WHERE true",
        "delete from lakehouse.silver.`fruits_quarantine`",
        f"TRUNCATE TABLE {QUARANTINE}",
        f"DROP TABLE IF EXISTS {QUARANTINE}",
        f"INSERT OVERWRITE {QUARANTINE} SELECT * FROM {QUARANTINE}",
        f"INSERT WITH SCHEMA EVOLUTION OVERWRITE {QUARANTINE} SELECT 1",
        f"INSERT INTO {QUARANTINE} REPLACE WHERE true SELECT 1",
        f"MERGE INTO {QUARANTINE} USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"CREATE OR REPLACE TABLE {QUARANTINE} AS SELECT 1 AS id",
        f"CALL system.rollback_to_snapshot('{QUARANTINE}', 1)",
        f"CALL system.fast_forward('{QUARANTINE}', 'main', 'x')",
        f"ALTER TABLE {QUARANTINE} REPLACE BRANCH main AS OF VERSION 1",
        f"ALTER TABLE {QUARANTINE} RENAME TO t.gone",
        f"ALTER TABLE {QUARANTINE} SET TBLPROPERTIES ('current-snapshot-id' = '1')",
        rf"ALTER TABLE {QUARANTINE} SET TBLPROPERTIES ('snapshot-i\u0064' = '1')",
        f"EXECUTE IMMEDIATE 'DELETE FROM {QUARANTINE}'",
        "DELETE FROM fruits_quarantine",
        "EXECUTE IMMEDIATE query",
        "EXPLAIN EXECUTE IMMEDIATE 'DEL' || 'ETE FROM x'",
        "BEGIN DELETE FROM silver.fruits; END",
        "DELETE FROM IDENTIFIER('silver.' || 'fruits_quarantine')",
        "DROP TABLE IDENTIFIER(name)",
        "CALL system.rollback_to_snapshot('silver.' || 'fruits_quarantine', 1)",
        "CALL system.rollback_to_snapshot(concat('silver.fruits', '_quarantine'), 1)",
        "CALL system.rollback_to_snapshot('silver.fruits' '_quarantine', 1)",
        "CALL system.rollback_to_snapshot(replace('x', 'x', 'silver.fruits') || '_x', 1)",
        "CALL system.rollback_to_snapshot(snapshot_id => 1, table => 'silver.fruits' || '_x')",
        "CALL IDENTIFIER('system.rollback_to_' || 'snapshot')('silver.x', 1)",
        "DELETE /* /*+ */ FROM silver.x",
        "DELETE FROM t.some_view",
    ],
)
def test_a_statement_that_may_empty_a_quarantine_is_rejected(statement: str) -> None:
    with pytest.raises(UsageError, match="quarantine"):
        locked("SELECT 1", statement)


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO {QUARANTINE} SELECT 1",
        f"UPDATE {QUARANTINE} SET id = 1",
        f"MERGE INTO {QUARANTINE} USING s ON true WHEN NOT MATCHED THEN INSERT *",
        f"DELETE FROM silver.fruits WHERE id IN (SELECT id FROM {QUARANTINE})",
        f"ALTER TABLE {QUARANTINE} ADD COLUMN colour string",
        f"BEGIN CALL system.expire_snapshots('{QUARANTINE}'); END",
        f"CALL system.rewrite_data_files('{QUARANTINE}')",
    ],
)
def test_a_statement_that_keeps_the_rows_of_a_quarantine_may_run(statement: str) -> None:
    assert locked(statement)


@pytest.mark.parametrize("kind", ["TEMPORARY VIEW t", "VIEW x.t"])
def test_a_view_hides_the_table_that_loses_rows(kind: str) -> None:
    view = kind.rpartition(" ")[2]
    with pytest.raises(UsageError, match=f"{view} is not the full name of a table"):
        locked(f"CREATE {kind} AS SELECT * FROM {QUARANTINE}", f"DELETE FROM {view}")


def test_a_table_of_the_same_script_is_known() -> None:
    script = ["CREATE TABLE tutorial.made (id int)", "DELETE FROM tutorial.made"]
    assert locked(*script) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM silver.fruits JOIN x USING (id) WHERE map('a', 1)['a'] = 1",
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
