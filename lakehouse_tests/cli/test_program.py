"""Exit codes, one line per error, and no needless imports."""

import pytest
from pyspark.errors import PySparkException

from lakehouse.cli import program
from lakehouse.errors import LakehouseError
from lakehouse_tests.cli.outcomes import imported_by

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "arguments", [["--help"], ["sql", "--help"], ["nonsense"], ["--version"]]
)
def test_help_is_quick_since_it_imports_nothing_heavy(arguments, home):
    assert imported_by(*arguments, env={"LAKEHOUSE_HOME": str(home)}) == set()


@pytest.mark.long
@pytest.mark.parametrize("command", ["files", "history"])
def test_looking_imports_neither_spark_nor_dagster(table_there, home, command):
    assert imported_by(command, table_there, env={"LAKEHOUSE_HOME": str(home)}).isdisjoint(
        {"pyspark", "dagster"}
    )


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["sql"], ["sql", "--format", "xml", "SELECT 1"], ["files"]]
)
def test_wrong_usage_exits_with_2_and_names_what_is_wrong(lakehouse, arguments):
    ran = lakehouse(*arguments)
    assert ran.code == 2
    assert ran.err[-1].startswith("Error: ")


def test_a_wrong_setting_is_wrong_usage(lakehouse, monkeypatch):
    monkeypatch.setenv("LAKEHOUSE_DEPLOYMENT", "moon")
    ran = lakehouse("status")
    assert ran.code == 2
    assert "LAKEHOUSE_DEPLOYMENT is 'moon'; expected one of local, aws." in ran.err[0]


@pytest.fixture
def failing(monkeypatch):
    """A command that ends in an error of the test's choice."""

    def fail_with(error: BaseException) -> None:
        def fail(**_: object) -> None:
            raise error

        monkeypatch.setattr(program.lakehouse.commands["status"], "callback", fail)

    return fail_with


def test_an_error_that_nobody_foresaw_is_one_line_too(lakehouse, failing):
    failing(RuntimeError("two\nlines"))
    ran = lakehouse("status")
    assert (ran.code, len(ran.err)) == (1, 1)
    assert "RuntimeError: two lines" in ran.err[0]
    assert "--verbose" in ran.err[0]


def test_an_unknown_error_of_spark_names_its_log(lakehouse, failing, home):
    failing(PySparkException("It is odd."))
    (line,) = lakehouse("status").err
    assert f"It is odd. Spark's log is {home / 'logs' / 'spark.log'}. Run it again" in line


def test_who_sees_the_traceback_is_not_told_how_to(lakehouse, failing):
    failing(RuntimeError("It is full."))
    assert lakehouse("status").err == [
        "lakehouse: RuntimeError: It is full. Run it again with --verbose for the traceback."
    ]
    assert lakehouse("status", "--verbose").err[-1] == "lakehouse: RuntimeError: It is full."


@pytest.mark.parametrize(
    ("option", "given", "said"),
    [
        ("--port", "99999", "not in the range 1<=x<=65535"),
        ("--host", "nowhere.invalid", "cannot listen on nowhere.invalid"),
    ],
)
def test_dev_names_an_address_that_cannot_be(lakehouse, option, given, said):
    ran = lakehouse("dev", option, given)
    assert ran.code == 2
    assert said in ran.err[-1]


def test_ctrl_c_is_one_line_and_130(lakehouse, failing):
    failing(KeyboardInterrupt())
    ran = lakehouse("status")
    assert (ran.code, ran.out) == (130, [])
    assert [line for line in ran.err if line] == [
        "lakehouse: stopped. What was published stays; the same command again does what is"
        " left."
    ]


def test_every_command_says_in_a_line_what_it_does(lakehouse):
    ran = lakehouse("--help")
    assert ran.code == 0
    listed = ran.out[ran.out.index("Commands:") + 1 :]
    assert len(listed) == len(program.lakehouse.commands)
    assert not any(line.endswith("...") for line in listed)


def test_an_error_that_came_of_ctrl_c_is_no_error(monkeypatch, capsys) -> None:
    """PySpark calls the JVM after an interrupt, and its error hides the interrupt."""

    def interrupted(*_: object, **__: object) -> None:
        try:
            try:
                raise KeyboardInterrupt
            finally:
                raise OSError("Answer from Java side is empty")
        except OSError as error:
            raise LakehouseError("Answer from Java side is empty") from error

    monkeypatch.setattr(program.lakehouse, "main", interrupted)
    assert program.run(["status"]) == program.INTERRUPTED
    assert capsys.readouterr().err.startswith("lakehouse: stopped.")


def test_an_error_that_is_its_own_cause_is_one_line(monkeypatch, capsys) -> None:
    """Errors of declarations are raised again while an error that they caused is handled."""

    def undeclared(*_: object, **__: object) -> None:
        inner = LakehouseError("on_failure is 'fail'")
        try:
            raise LakehouseError("In definitions.py") from inner
        except LakehouseError:
            raise inner from None

    monkeypatch.setattr(program.lakehouse, "main", undeclared)
    assert program.run(["plan"]) == 1
    assert capsys.readouterr().err == "lakehouse: on_failure is 'fail'\n"
