"""An error of Spark in one line, as it arrives from the embedded Spark and from Spark Connect."""

import pytest

from lakehouse.iceberg.spark_errors import one_line

pytestmark = pytest.mark.unit


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
