"""An error of Spark in one line, as it arrives from the embedded Spark and from Spark
Connect.
"""

import subprocess
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.commit.commit_retries import Failure, classify
from lakehouse.iceberg.frames import pyspark_internals
from lakehouse.iceberg.frames.spark_errors import has_spark_exited, one_line, plain
from lakehouse_tests.conftest import on_embedded_alone


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)\n\n"
            "== SQL ==\nselec 1\n^^^\n",
            "[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. (line 1, pos 0)",
        ),
        (
            "\nInvalid number of buckets: customer_id.\n== SQL (line 1, position 77) ==\n...(bucket(customer_id, 10))",
            "Invalid number of buckets: customer_id. (line 1, position 77)",
        ),
        (
            "An error occurred while calling o58.sql.\n: org.apache.iceberg.exceptions.ValidationException: "
            "Cannot use branch (does not exist): x\n\tat org.apache.iceberg.Foo.check(Foo.java:49)",
            "Cannot use branch (does not exist): x",
        ),
        (
            "(org.apache.iceberg.exceptions.ValidationException) Cannot use branch (does not exist): x\n\n"
            "JVM stacktrace:\norg.apache.iceberg…",
            "Cannot use branch (does not exist): x",
        ),
        (
            "[UNRESOLVED_COLUMN] A column with name `nope` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;\n"
            "'Project ['nope]\n+- RelationV2[id#1L] t.fruits\n",
            "[UNRESOLVED_COLUMN] A column with name `nope` cannot be resolved.; line 1 pos 7",
        ),
        ("[X] The reason is too many data columns:\nTable columns: `id`.\nData columns: `a`, `b`.",
         "[X] The reason is too many data columns: Table columns: `id`. Data columns: `a`, `b`."),
        ("", "RuntimeError"),
    ],
)  # fmt: skip
def test_the_message_is_kept_and_the_stack_the_plan_and_the_query_are_not(text, line):
    assert one_line(RuntimeError(text)) == line


STACK = (
    "\n\tat org.apache.iceberg.hadoop.HadoopInputFile.newStream(HadoopInputFile.java:187)\n\tat"
    " java.base/x.Y(Z.java:1)"
)
FILE = "/home/warehouse/silver/fruits-2e00ebe171564d1ca6add1552b2df56a/data/a.parquet"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            (
                "py4j.protocol.Py4JJavaError: An error occurred while calling"
                " o203.localCheckpoint.\n: org.apache.spark.SparkException: Job aborted:"
                " org.apache.iceberg.exceptions.NotFoundException: Failed to open input stream"
                f" for file: file:{FILE}{STACK}"
            ),
            (
                f"The file {FILE} is missing, and silver.fruits needs it. Restore it from a"
                " backup; `lakehouse doctor` lists all missing files."
            ),
        ),
        (
            "py4j.protocol.Py4JJavaError: An error occurred while calling o1.x.\n:"
            " java.io.IOException: odd" + STACK,
            "odd",
        ),
        (
            "OSError: [Errno 28] No space left on device: '/home/x'",
            "OSError: [Errno 28] No space left on device: '/home/x'",
        ),
        (
            "Py4JJavaError: x.\n: java.lang.OutOfMemoryError: Java heap space" + STACK,
            "Spark ran out of memory. Set",
        ),
        (
            (
                "SparkConnectGrpcException: <_MultiThreadedRendezvous of RPC with:\n\tdetails ="
                ' "Java heap space"\n>'
            ),
            "Spark ran out of memory. Set LAKEHOUSE_SPARK_MEMORY to more",
        ),
        (
            (
                "UnknownException: (java.lang.IllegalStateException) Cannot call methods on a"
                " stopped SparkContext.\nThis stopped SparkContext was created"
                " at:\n\norg.apache.spark.sql.connect.service.X.main(X.scala)"
            ),
            (
                "Spark ended while this ran. What was published stays; run the same command"
                " again to do the rest."
            ),
        ),
        (
            (
                "py4j.protocol.Py4JJavaError: An error occurred while calling o405.append.\n:"
                " org.apache.spark.SparkException: Job 13 cancelled because SparkContext was"
                f" shut down{STACK}"
            ),
            "Spark ended while this ran.",
        ),
        (
            (
                "SparkConnectGrpcException: [INTERNAL_ERROR] No active or default Spark session"
                " found. SQLSTATE: XX000"
            ),
            "Spark ended while this ran.",
        ),
        (
            "ValueError: what an asset's function says",
            "ValueError: what an asset's function says",
        ),
        (
            (
                "sqlalchemy.exc.IntegrityError: (sqlite3.IntegrityError) UNIQUE\n[SQL: INSERT"
                " 1]\n(Background on this error at: https://sqlalche.me/e/21/gkpj)"
            ),
            "IntegrityError: UNIQUE",
        ),
    ],
)
def test_what_people_can_do_is_said_in_place_of_a_stack_or_a_link(text: str, line: str) -> None:
    said = plain(text)
    assert said.startswith(line)
    assert "\n" not in said
    assert ".java:" not in said
    assert "https://" not in said


class WithoutWords(Exception):
    """As Py4J's errors of Java are, whose text is asked of Java."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.unit
def test_an_error_of_a_java_that_is_gone_by_the_time_of_its_text_is_told_all_the_same() -> None:
    assert one_line(WithoutWords()).startswith("Spark's Java process ended in the middle of it")
    assert classify(WithoutWords()) is Failure.OTHER


@pytest.mark.unit
@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        Py4JError("An error occurred while calling o405.append"),
    ],
)
def test_a_call_to_a_java_that_was_killed_says_so_whatever_it_raises(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = subprocess.Popen(["sleep", "60"])
    killed.kill()
    monkeypatch.setattr(pyspark_internals, "_ENDING_SECONDS", 60.0)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=killed))
    assert one_line(error).startswith("Spark's Java process ended in the middle of it")


@pytest.mark.unit
def test_for_the_end_of_java_it_is_waited_once_for_each_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        raise subprocess.TimeoutExpired("java", seconds)

    alive = SimpleNamespace(wait=wait, poll=lambda: None)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=alive))
    error = ConnectionRefusedError(111, "Connection refused")
    assert not any(has_spark_exited(error) for _ in range(3))
    assert [bool(seconds) for seconds in waits] == [True, False, False]


@on_embedded_alone("the error is that of a folder")
def test_a_data_file_that_is_gone_is_named_with_its_table(
    embedded_engine: Engine, home
) -> None:
    table = embedded_engine.catalog.sql_name("silver.fruits")
    embedded_engine.sql(f"CREATE NAMESPACE {embedded_engine.catalog.sql_name('silver')}")
    embedded_engine.sql(f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS id")
    (file,) = (home / "warehouse").rglob("*.parquet")
    file.unlink()
    with pytest.raises(Exception, match="NotFoundException") as raised:
        embedded_engine.sql(f"SELECT * FROM {table}").collect()
    assert one_line(raised.value).startswith(
        f"The file {file} is missing, and silver.fruits needs it. Restore it"
    )
