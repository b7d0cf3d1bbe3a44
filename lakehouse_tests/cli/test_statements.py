"""Splitting a script, and finding which declared tables a statement writes to."""

import pytest

from lakehouse.cli.sql_text.statements import declared_targets, emptied_by, split, targets, verb

pytestmark = pytest.mark.unit

DECLARED = ["bronze.raw_fruits", "silver.fruits", "silver.fruits_quarantine"]


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
        "INSERT INTO TABLE silver.fruits VALUES (1)",
        "insert overwrite lakehouse.silver.fruits select 1",
        "INSERT OVERWRITE TABLE silver.fruits PARTITION (berry = true) SELECT 1",
        "INSERT INTO `silver`.`fruits` VALUES (1)",
        "INSERT INTO `lakehouse`.silver.`fruits` (id) VALUES (1)",
        "INSERT INTO silver.fruits.branch_fix VALUES (1)",
        "INSERT INTO lakehouse.silver.fruits.`branch_fix-1` VALUES (1)",
        "INSERT INTO SILVER.Fruits VALUES (1)",
        "INSERT /* into other.t */ INTO -- really\n silver . fruits VALUES (1)",
        "INSERT INTO IDENTIFIER('silver.fruits') VALUES (1)",
        (
            "WITH a AS (SELECT 1), b (x, y) AS (SELECT (2), 3) INSERT INTO silver.fruits SELECT"
            " * FROM a"
        ),
        (
            "FROM bronze.raw_fruits INSERT INTO silver.fruits SELECT * INSERT INTO silver.other"
            " SELECT *"
        ),
        "UPDATE silver.fruits SET fruit = 'Bilberry'",
        "UPDATE silver.fruits AS t SET fruit = 'x'",
        "DELETE FROM silver.fruits WHERE fruit = 'Banana'",
        (
            "MERGE INTO silver.fruits t USING bronze.raw_fruits s ON t.id = s.id WHEN MATCHED"
            " THEN DELETE"
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO silver.fruits USING s ON true WHEN MATCHED THEN"
            " DELETE"
        ),
        (
            "WITH s AS (SELECT 1 AS id) MERGE INTO silver.fruits t USING s ON t.id = s.id WHEN"
            " MATCHED THEN DELETE"
        ),
        "ALTER TABLE silver.fruits ADD COLUMN colour string",
        "ALTER TABLE other.t RENAME TO silver.fruits",
        "ALTER TABLE silver.fruits RENAME TO silver.gone",
        "ALTER TABLE silver.fruits CREATE BRANCH fix",
        "DROP TABLE silver.fruits",
        "DROP TABLE IF EXISTS lakehouse.silver.fruits PURGE",
        "TRUNCATE TABLE silver.fruits",
        "CREATE TABLE silver.fruits (id int)",
        "CREATE TABLE IF NOT EXISTS silver.fruits AS SELECT 1",
        "CREATE OR REPLACE TABLE silver.fruits USING iceberg AS SELECT 1",
        "REPLACE TABLE silver.fruits AS SELECT 1",
        "COMMENT ON TABLE silver.fruits IS 'x'",
        "COMMENT ON COLUMN silver.fruits.id IS 'x'",
        "CALL lakehouse.system.rewrite_data_files('silver.fruits')",
        "CALL system.expire_snapshots(older_than => now(), table => 'silver.fruits')",
        "CALL system.rollback_to_snapshot('lakehouse.silver.fruits', 1)",
        "CALL system.snapshot('other.t', 'silver.fruits')",
        "CALL `system`.`fast_forward`(\"silver.fruits\", 'main', 'x')",
        "EXECUTE IMMEDIATE 'DELETE FROM silver.fruits'",
        "EXECUTE IMMEDIATE 'DELETE FROM silver.fruits WHERE id = ?' USING 1",
        "EXPLAIN EXECUTE IMMEDIATE 'DELETE FROM silver.fruits'",
        "CALL system.expire_snapshots('silver.fruits', retain_last => 1)",
        "CALL IDENTIFIER('lakehouse.system.expire_snapshots')('silver.fruits')",
        "CALL system.SNAPSHOT('other.t', 'silver.fruits')",
        "CALL system.rewrite_data_files(table => '`silver`.`fruits`')",
        "CREATE VIEW silver.fruits AS SELECT 1",
        "CREATE OR REPLACE VIEW silver.fruits AS SELECT 1",
        "ALTER VIEW silver.fruits AS SELECT 1",
        "DROP VIEW silver.fruits",
        "ANALYZE TABLE silver.fruits COMPUTE STATISTICS",
        "REPAIR TABLE silver.fruits",
        "WITH a AS (SELECT 1) (SELECT 2) INSERT INTO silver.fruits SELECT 1",
        "FROM t INSERT INTO a.b SELECT /*+ h('/*') */ * INSERT INTO silver.fruits SELECT *",
        "FROM t INSERT INTO a.b SELECT * -- told\rINSERT INTO silver.fruits SELECT *",
        "FROM t INSERT\u200bINTO silver.fruits SELECT *",
        "\u0131nsert \u0131nto silver.fruits VALUES (1)",
    ],
)
def test_a_write_is_seen_however_it_is_written(statement: str) -> None:
    assert declared_targets(statement, DECLARED) == ["silver.fruits"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM silver.fruits",
        "SELECT 'INSERT INTO silver.fruits'",
        "SELECT `delete` FROM silver.fruits -- DROP TABLE silver.fruits",
        "WITH insert AS (SELECT 1) SELECT * FROM insert, silver.fruits",
        "SHOW CREATE TABLE silver.fruits",
        "DESCRIBE TABLE silver.fruits",
        "EXPLAIN INSERT INTO silver.fruits VALUES (1)",
        "INSERT INTO tutorial.fruits SELECT * FROM silver.fruits",
        "INSERT INTO tutorial.silver VALUES (1)",
        "FROM silver.fruits |> WHERE id > 1 |> SELECT fruit",
        "SELECT /*+ BROADCAST(f) */ * FROM silver.fruits f /* a /* b */ c */",
        "WITH a AS (SELECT 1) (SELECT * FROM a)",
        (
            "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT"
            " * FROM a"
        ),
        "EXECUTE IMMEDIATE 'SELECT * FROM silver.fruits WHERE fruit = ?' USING 'Apple'",
        (
            "SELECT '${x}', transform(array(1), x -> x) FROM silver.fruits JOIN"
            " silver.fruits_quarantine USING (fruit)"
        ),
        "CACHE TABLE kept AS SELECT * FROM silver.fruits",
        "DECLARE VARIABLE x INT DEFAULT 1",
        "SET VAR x = (SELECT max(id) FROM silver.fruits)",
        "CREATE FUNCTION silver.one() RETURNS INT RETURN 1",
        "DROP TEMPORARY FUNCTION one",
        "ALTER NAMESPACE tutorial SET PROPERTIES ('a' = 'b')",
        "CREATE TABLE tutorial.copy AS SELECT * FROM silver.fruits",
        "CREATE TEMPORARY VIEW fruits AS SELECT * FROM silver.fruits",
        "DELETE FROM other.silver.fruits",
        "MERGE INTO tutorial.t USING silver.fruits s ON true WHEN MATCHED THEN DELETE",
        "CALL system.ancestors_of('silver.fruits')",
        "CALL system.create_changelog_view(table => 'silver.fruits')",
        "CALL system.remove_orphan_files(table => 'silver.fruits', dry_run => true)",
        "CALL system.rewrite_data_files('tutorial.fruits')",
        "DROP NAMESPACE tutorial",
        "USE silver",
        "SET spark.sql.shuffle.partitions = 2",
        "",
        "(((",
        "WITH",
    ],
)
def test_what_changes_no_declared_table_needs_no_leave(statement: str) -> None:
    assert declared_targets(statement, DECLARED) == []


@pytest.mark.parametrize(
    "statement",
    [
        "EXECUTE IMMEDIATE query",
        "INSERT INTO IDENTIFIER('silver.' || 'fruits') VALUES (1)",
        "CALL system.rewrite_data_files(table => concat('silver', '.fruits'))",
        "BEGIN DELETE FROM silver.fruits; END",
        "UPDATE",
        "INSERT WITH SCHEMA EVOLUTION INTO silver.fruits SELECT 1",
        "EXECUTE IMMEDIATE 'DEL' || 'ETE FROM silver.fruits'",
        "EXECUTE IMMEDIATE 'DEL' 'ETE FROM silver.fruits'",
        r"EXECUTE IMMEDIATE '\u0044ELETE FROM silver.fruits'",
        "EXECUTE IMMEDIATE 'DELETE FROM IDENTIFIER(?)' USING 'silver.fruits'",
        "EXPLAIN EXECUTE IMMEDIATE query",
        "CALL system.rewrite_data_files(table => 'silver' '.fruits')",
        r"CALL system.rewrite_data_files(table => 'silver.fruit\u0073')",
        "CALL system.rewrite_data_files(table => 'silver.fruits' || '')",
        "CALL IDENTIFIER('system.' || 'expire_snapshots')(lower('SILVER.FRUITS'))",
        "DELETE FROM silver.IDENTIFIER('fruits')",
        "DELETE FROM IDENTIFIER('silver').fruits",
        "INSERT OVERWRITE DIRECTORY '/x' SELECT * FROM silver.fruits",
        "CREATE TABLE t.x USING parquet LOCATION '/warehouse/silver/fruits/data'",
        "CREATE TEMPORARY VIEW x USING parquet OPTIONS (path '/warehouse/silver/fruits/data')",
        "SET spark.sql.catalog.other = org.apache.iceberg.spark.SparkCatalog",
        "SELECT reflect('java.nio.file.Files', 'delete', path) FROM silver.fruits.files",
        "SELECT TRANSFORM(id) USING 'rm -rf' AS (x) FROM silver.fruits",
        "SELECT 1 /* /*+ */ FROM t",
        "CALL system.remove_orphan_files(table => 't.x', location => '/warehouse/silver/fruits')",
        "CALL system.remove_orphan_files('t.x', now(), '/warehouse/silver/fruits')",
        "CALL system.register_table('t.x', '/warehouse/silver/fruits/metadata/1.metadata.json')",
        "CALL system.add_files('t.x', '`parquet`.`/warehouse/silver/fruits/data`')",
    ],
)
def test_where_the_text_does_not_tell_it_may_be_any_table(statement: str) -> None:
    assert declared_targets(statement, DECLARED) == DECLARED


def test_dropping_a_namespace_concerns_all_its_tables() -> None:
    assert (
        declared_targets("DROP SCHEMA IF EXISTS lakehouse.silver CASCADE", DECLARED)
        == DECLARED[1:]
    )


def test_a_bare_name_may_be_in_any_namespace() -> None:
    assert targets("DELETE FROM fruits") == ["*.fruits"]


def test_a_multiple_insert_has_several_targets() -> None:
    assert targets("FROM x.t INSERT INTO a.b SELECT 1 INSERT INTO c.d SELECT 2") == [
        "a.b",
        "c.d",
    ]


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("select 1", "SELECT"),
        ("-- x\n Delete from t", "DELETE"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT 1", "INSERT"),
        ("", ""),
    ],
)
def test_the_verb_is_what_a_statement_does(statement: str, word: str) -> None:
    assert verb(statement) == word


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM silver.q WHERE true",
        "TRUNCATE TABLE silver.q",
        "DROP TABLE IF EXISTS silver.q",
        "INSERT OVERWRITE silver.q SELECT 1",
        "MERGE INTO silver.q AS t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "EXECUTE IMMEDIATE 'DELETE FROM silver.q'",
        "CREATE OR REPLACE TABLE silver.q AS SELECT 1 AS id",
        "REPLACE TABLE silver.q AS SELECT 1 AS id",
        "INSERT INTO silver.q REPLACE WHERE true SELECT 1",
        "EXPLAIN EXECUTE IMMEDIATE 'DELETE FROM silver.q'",
        "CALL system.rollback_to_snapshot('silver.q', 1)",
        "CALL system.rollback_to_timestamp(table => 'silver.q', timestamp => now())",
        "CALL lakehouse.system.set_current_snapshot('silver.q', 1)",
        "CALL system.fast_forward('silver.q', 'main', 'x')",
        "EXECUTE IMMEDIATE \"CALL system.cherrypick_snapshot('silver.q', 1)\"",
        "ALTER TABLE silver.q CREATE OR REPLACE BRANCH main AS OF VERSION 1",
        "ALTER TABLE silver.q REPLACE BRANCH `main` AS OF VERSION 1",
        "ALTER TABLE silver.q RENAME TO t.gone",
        "ALTER TABLE silver.q SET TBLPROPERTIES ('current-snapshot-id' = '1')",
        r"ALTER TABLE silver.q SET TBLPROPERTIES ('current\u002dsnapshot-i\u0064' = '1')",
        "CREATE OR REPLACE TABLE silver.q LOCATION '/x' AS SELECT 1 AS id",
    ],
)
def test_what_takes_rows_out_is_seen(statement: str) -> None:
    assert emptied_by(statement) == ["silver.q"]


@pytest.mark.parametrize(
    "statement",
    [
        "BEGIN DELETE FROM silver.q; END",
        "BEGIN CALL system.rollback_to_snapshot('silver.q', 1); END",
        "EXECUTE IMMEDIATE query",
        "EXECUTE IMMEDIATE 'DEL' || 'ETE FROM silver.q'",
        "EXECUTE IMMEDIATE 'DELETE FROM IDENTIFIER(?)' USING 'silver.q'",
        "EXPLAIN EXECUTE IMMEDIATE query",
        "DELETE FROM IDENTIFIER('silver.' || 'q')",
        "DROP TABLE IDENTIFIER(name)",
        "INSERT WITH SCHEMA EVOLUTION OVERWRITE silver.q SELECT 1",
        "DELETE /* /*+ */ FROM silver.q",
    ],
)
def test_where_the_text_does_not_tell_rows_of_any_table_may_be_taken_out(
    statement: str,
) -> None:
    assert emptied_by(statement) == ["*.*"]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO silver.q SELECT 1",
        "UPDATE silver.q SET id = 1",
        "MERGE INTO silver.q AS t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "SELECT 1",
        "EXPLAIN DELETE FROM silver.q",
        "BEGIN INSERT INTO silver.q SELECT 1; SELECT 2; END",
        "BEGIN CALL system.expire_snapshots('silver.q'); END",
        "INSERT OVERWRITE DIRECTORY '/x' SELECT * FROM silver.q",
        "ALTER TABLE silver.q ADD COLUMN colour string",
        "ALTER TABLE silver.q RENAME COLUMN a TO b",
        "ALTER TABLE silver.q CREATE OR REPLACE BRANCH fix",
        "ALTER TABLE silver.q SET TBLPROPERTIES ('a' = 'b')",
        "CALL system.rewrite_data_files('silver.q')",
        "SELECT 1 /* /*+ */ FROM silver.q",
    ],
)
def test_what_takes_no_rows_out_is_none(statement: str) -> None:
    assert emptied_by(statement) == []
