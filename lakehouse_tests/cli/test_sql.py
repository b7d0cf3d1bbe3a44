"""`lakehouse sql`: what is printed, what needs leave, and what an error looks like."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.orchestration.deployment import open_engine
from lakehouse_tests.conftest import settings_at

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

ONE_ROW = "SELECT 1 AS id, CAST(NULL AS string) AS fruit, true AS berry"


@pytest.fixture
def fruits(lakehouse, filled_by):
    """A table that nobody declared, with three rows in one file."""

    def fill() -> None:
        ran = lakehouse(
            "sql",
            "--write",
            "CREATE NAMESPACE t; CREATE TABLE t.fruits (id bigint, fruit string);"
            "INSERT INTO t.fruits VALUES (1, 'Apple'), (2, 'Banana'), (3, 'Fig')",
        )
        assert ran.out == ["ok", "ok", "ok"]

    filled_by("fruits").bring_back(fill)


def run_sql(lakehouse, text: str):
    """Run a statement, with the option that it may begin with."""
    options = ["--write"] if text.startswith("--write ") else []
    return lakehouse("sql", *options, text.removeprefix("--write "))


@pytest.fixture
def declared_fruits(lakehouse, filled_by):
    """A table of a declared name with one row, and a view of it."""

    def fill() -> None:
        made = (
            "CREATE NAMESPACE t; CREATE NAMESPACE silver; CREATE TABLE silver.fruits AS SELECT"
            " 1 AS id;"
        )
        kept = "CREATE VIEW t.kept AS SELECT * FROM lakehouse.silver.fruits"
        assert lakehouse("sql", f"{made} {kept}", "--write").code == 0

    filled_by("declared_fruits").bring_back(fill)


def test_a_question_prints_an_aligned_table(lakehouse):
    ran = lakehouse("sql", ONE_ROW)
    assert (ran.code, ran.err) == (0, [])
    assert ran.out == [
        "id | fruit | berry",
        "---+-------+------",
        " 1 | NULL  | true",
        "(1 row)",
    ]


def test_csv_is_what_programs_read(lakehouse):
    assert lakehouse("sql", "--format", "csv", ONE_ROW).out == ["id,fruit,berry", "1,,true"]


def test_results_of_several_statements_are_one_json_document(lakehouse, fruits):
    script = (
        "SELECT 1 AS one; DELETE FROM t.fruits WHERE id = 1; SELECT count(*) AS n FROM t.fruits"
    )
    ran = lakehouse("sql", "--write", "--format", "json", script)
    assert json.loads("\n".join(ran.out)) == [[{"one": 1}], [{"n": 2}]]
    assert ran.err == ["ok"]


def test_a_write_needs_an_option_before_anything_runs(lakehouse):
    ran = lakehouse("sql", "SELECT 1; CREATE NAMESPACE t")
    assert (ran.code, ran.out) == (2, [])
    assert ran.err == [
        "lakehouse: statement 2 of 2: a statement with CREATE is not a query; expected SELECT,"
        " WITH, SHOW, DESCRIBE, EXPLAIN or another query; nothing was changed. Add --write to"
        " change tables; a run may recompute the rows of declared ones."
    ]


def test_a_write_to_a_declared_table_is_said_to_be_recomputed(lakehouse):
    lakehouse(
        "sql", "CREATE NAMESPACE silver; CREATE TABLE silver.fruits (id bigint)", "--write"
    )
    ran = lakehouse("sql", "--write", "INSERT INTO silver.fruits VALUES (1)")
    assert ran.out == ["ok"]
    assert ran.err == [
        "silver.fruits is computed from its declaration: the next run may recompute these rows."
    ]


def test_quarantined_rows_are_not_deleted(lakehouse):
    """Of a table without versions, no check could tell them from rows that are left out."""
    statement = "DELETE FROM silver.fruits_quarantine WHERE id = '1'"
    ran = lakehouse("sql", "--write", f"CREATE NAMESPACE t; {statement}")

    assert ran.code == 2
    (message,) = ran.err
    assert "quarantine silver.fruits_quarantine" in message
    assert "lakehouse quarantine clear silver.fruits --why" in message
    assert "t" not in lakehouse("sql", "--format", "csv", "SHOW NAMESPACES").out


def test_a_write_to_a_declared_table_takes_turns_with_runs(lakehouse, home: Path):
    lakehouse(
        "sql", "CREATE NAMESPACE silver; CREATE TABLE silver.fruits (id bigint)", "--write"
    )
    lock = FileLock(home / "locks" / "silver.fruits.lock", thread_local=False)
    lock.acquire()
    released_at = []

    def release() -> None:
        time.sleep(1)
        released_at.append(time.monotonic())
        lock.release()

    other = Thread(target=release)
    other.start()
    ran = lakehouse("sql", "--write", "INSERT INTO silver.fruits VALUES (1)")
    assert released_at, "The write did not wait."
    assert ran.code == 0
    other.join()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("WITH a AS SELECT 1", "Syntax error at or near"),
        ("SELECT 1 / 0", "Division by zero."),
        ("SELECT * FROM t.fruits VERSION AS OF 'gone'", "Cannot find matching snapshot ID"),
        ("--write DROP NAMESPACE t", "Namespace t is not empty"),
    ],
)
def test_an_error_of_spark_is_one_readable_line(lakehouse, fruits, statement, said):
    ran = run_sql(lakehouse, statement)
    assert (ran.code, ran.out, len(ran.err)) == (1, [], 1)
    assert said in ran.err[0]
    assert "SQLSTATE" not in ran.err[0]
    assert "org.apache" not in ran.err[0]


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("SELECT * FROM lakehouse.t.friuts", 2, "did you mean t.fruits?"),
        ("SELECT 1; DESCRIBE x.nothing", 2, "There is no table x.nothing; expected one of"),
        ("SELECT * FROM silver.fruits", 1, "is declared, and not there yet."),
    ],
)
def test_a_table_that_is_not_there_has_the_exit_code_that_it_has_everywhere(
    lakehouse, fruits, statement, code, said
):
    ran = run_sql(lakehouse, statement)
    assert (ran.code, len(ran.err)) == (code, 1)
    assert said in ran.err[0]


def test_the_statement_that_failed_is_named_and_those_before_it_stand(lakehouse):
    ran = lakehouse("sql", "--format", "csv", "SELECT 1 AS one; SELECT nope; SELECT 3")
    assert (ran.code, ran.out) == (1, ["one", "1"])
    assert ran.err[0].startswith("lakehouse: statement 2 of 3: ")


@pytest.mark.parametrize(
    "script",
    [
        "SET verb = DELETE FROM; ${verb} t.fruits",
        "SET spark.sql.variable.substitute = true; SET verb = DELETE FROM; ${verb} t.fruits",
        "${env:HOME} FROM t.fruits",
    ],
)
def test_variables_are_not_substituted(lakehouse, fruits, script):
    ran = lakehouse("sql", "--write", script)
    assert ran.code != 0
    assert lakehouse("sql", "--format", "csv", "SELECT count(*) AS n FROM t.fruits").out == [
        "n",
        "3",
    ]


ATTACKS = [
    # Writes, however they are spelled.
    "DELETE FROM silver.fruits",
    "SELECT 1; DELETE\u200bFROM silver.fruits",
    "WITH a AS (SELECT 2 AS id) INSERT INTO silver.fruits SELECT * FROM a",
    "FROM silver.fruits INSERT INTO silver.fruits SELECT *",
    "(SELECT 1) INSERT INTO silver.fruits SELECT 2",
    "SELECT 1) AS a; DELETE FROM silver.fruits -- (",
    "WITH a AS (SELECT 1) SELECT * FROM a); DELETE FROM silver.fruits; (SELECT 1",
    "/* SELECT */ DELETE FROM silver.fruits",
    "EXECUTE IMMEDIATE 'DEL' || 'ETE FROM silver.fruits'",
    "EXPLAIN EXECUTE IMMEDIATE 'DELETE FROM silver.fruits'",
    "EXPLAIN EXTENDED DELETE FROM silver.fruits",
    "EXPLAIN INSERT OVERWRITE DIRECTORY '{folder}/out' USING csv SELECT 1",
    "BEGIN DELETE FROM silver.fruits; END",
    "CREATE TEMPORARY VIEW f AS SELECT * FROM silver.fruits; DELETE FROM f",
    "DELETE FROM t.kept",
    "USE silver; DELETE FROM IDENTIFIER('fru' || 'its')",
    "CREATE TABLE t.x AS SELECT 1",
    "CREATE TABLE t.x (id int) TBLPROPERTIES ('write.data.path'='{warehouse}/silver')",
    "CREATE VIEW t.v AS SELECT 1",
    "DROP NAMESPACE silver CASCADE",
    "ALTER TABLE silver.fruits RENAME TO silver.other",
    "CALL system.remove_orphan_files(table => 'silver.fruits')",
    "CALL `system`.expire_snapshots('silver.fruits')",
    "SET spark.sql.catalog.second = org.apache.iceberg.spark.SparkCatalog; SELECT 1",
    "SET spark.sql.runSQLOnFiles = true",
    "RESET spark.sql.runSQLOnFiles",
    # Files.
    "INSERT OVERWRITE DIRECTORY '{folder}/out' USING csv SELECT 1",
    "CREATE TABLE spark_catalog.default.x USING parquet LOCATION '{folder}/out' AS SELECT 1",
    "SELECT * FROM text.`{folder}/secret`",
    "TABLE text.`{folder}/secret`",
    "DESCRIBE text.`{folder}/secret`",
    "SELECT * FROM IDENTIFIER('text.`{folder}/secret`')",
    "CREATE TEMPORARY VIEW x USING text OPTIONS (path '{folder}/secret'); TABLE x",
    # Code.
    "SELECT {reflect}",
    "SELECT IDENTIFIER('reflect')({arguments})",
    "SELECT java_method({arguments})",
    "SELECT try_reflect({arguments})",
    "SELECT system.builtin.reflect({arguments})",
    "WITH a AS (SELECT {reflect}) SELECT * FROM a",
    "SELECT * FROM VALUES ({reflect})",
    "SHOW TABLES IN IDENTIFIER({reflect})",
    "CALL system.ancestors_of(table => {reflect})",
    "DROP TEMPORARY FUNCTION reflect; SELECT {reflect}",
    "SELECT TRANSFORM(id) USING 'touch {folder}/ran' AS x FROM silver.fruits",
    "FROM silver.fruits MAP id /* ( */ USING 'touch {folder}/ran' AS x",
    "WITH a AS (FROM silver.fruits REDUCE id u\u017fing 'touch {folder}/ran' AS x) TABLE a",
    "ADD JAR '{folder}/secret'",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Object' USING JAR '{folder}/secret'",
]
"""Statements that without `--write` must fail or only read, each run on a real session."""


def test_no_statement_writes_reads_files_or_runs_code_without_the_option(
    lakehouse, declared_fruits, home: Path, tmp_path: Path, spark
):
    (tmp_path / "secret").write_text("file of the machine")
    arguments = "'java.lang.System', 'setProperty', 'lakehouse.attack', '1'"
    values = {
        "folder": tmp_path,
        "warehouse": home / "warehouse",
        "arguments": arguments,
        "reflect": f"reflect({arguments})",
    }
    before = state_of(home)
    harmless = ("EXPLAIN EXTENDED DELETE", "EXPLAIN INSERT")
    for attack in ATTACKS:
        statement = attack
        for name, value in values.items():
            statement = statement.replace(f"{{{name}}}", str(value))
        ran = lakehouse("sql", statement)
        assert ran.code != 0 or attack.startswith(harmless), attack
        assert "file of the machine" not in "".join([*ran.out, *ran.err]), attack
        assert state_of(home) == before, attack
        assert [path.name for path in tmp_path.iterdir()] == ["secret"], attack
        assert spark._jvm.System.getProperty("lakehouse.attack") is None, attack
    assert lakehouse("sql", "--format", "csv", "TABLE silver.fruits").out == ["id", "1"]


def state_of(home: Path) -> tuple[dict[str, str], set[Path]]:
    """Where the metadata of each table is, and the files of the warehouse."""
    catalog = Catalog.of(settings_at(home))
    return catalog.metadata_locations(), {*(home / "warehouse").rglob("*")}


def test_the_session_itself_cannot_commit(lakehouse, declared_fruits, home: Path):
    """Also a statement that no check stops changes no table of the embedded catalog."""
    before = Catalog.of(settings_at(home)).metadata_locations()
    session = open_engine(settings_at(home), is_read_only=True).spark
    for statement in ("DROP TABLE silver.fruits", "INSERT INTO silver.fruits VALUES (2)"):
        with pytest.raises(Exception, match=r"readonly database|UncheckedSQLException"):
            session.sql(statement)
    assert Catalog.of(settings_at(home)).metadata_locations() == before


def test_the_catalog_of_an_older_pyiceberg_is_read(lakehouse, home: Path):
    """It lacks a column, which a read-only session cannot add."""
    assert Catalog.of(settings_at(home)).client.list_namespaces() == []
    with closing(sqlite3.connect(home / "catalog.db")) as database:
        database.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    ran = lakehouse("sql", "--format", "csv", "SHOW NAMESPACES")
    assert (ran.code, ran.out, ran.err) == (0, ["namespace"], [])
