"""What is not public in PySpark: looked at for the version that is installed, used where it is
said to be, and there.
"""

import ast
import warnings
from importlib.metadata import version
from pathlib import Path
from unittest.mock import create_autospec

import grpc
import pyspark
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.core import SparkConnectClient

import lakehouse
from lakehouse.iceberg.frames import pyspark_internals
from lakehouse.iceberg.frames.pyspark_internals import (
    CHECKED_VERSION,
    LOGS_WITH_VALUES,
    connect_channel,
    has_context,
    java_property,
    set_connect_retries,
)

_HOME = Path(lakehouse.__file__).parent
_PRIVATE_MODULES = ("pyspark.java_gateway", "pyspark.sql.connect.client")
_PUBLIC = ("_replace",)
"""What begins with an underscore, and is public all the same: a method of named tuples."""


@pytest.mark.unit
def test_the_version_that_is_installed_was_looked_at() -> None:
    assert version("pyspark") == CHECKED_VERSION, (
        f"PySpark {version('pyspark')} is installed, and {CHECKED_VERSION} was looked at: look whether"
        f" all that {pyspark_internals.__name__} uses is still there and does the same."
    )


@pytest.mark.unit
def test_the_context_keeps_its_jvm_under_these_names() -> None:
    assert {"_active_spark_context", "_gateway", "_jvm"} <= vars(SparkContext).keys()


@pytest.mark.unit
def test_the_logs_that_print_values_have_these_names() -> None:
    source = Path(pyspark.__file__).with_name("errors") / "exceptions" / "base.py"
    text = source.read_text(encoding="utf-8")
    assert all(f'PySparkLogger.getLogger("{name}")' in text for name in LOGS_WITH_VALUES)
    assert text.count("getLogger(") == len(LOGS_WITH_VALUES)


@pytest.mark.unit
def test_a_channel_is_to_the_server_that_is_named() -> None:
    channel = connect_channel("sc://localhost:15002")
    assert channel._channel.target() == b"dns:///localhost:15002"
    channel.close()


class NoAnswer(grpc.RpcError):
    """Of a server that nobody reaches."""

    def code(self) -> grpc.StatusCode:
        """Return what gRPC says of it."""
        return grpc.StatusCode.UNAVAILABLE

    def trailing_metadata(self) -> None:
        """Nothing came."""


@pytest.mark.unit
def test_a_server_that_was_given_up_on_is_not_waited_for_again_soon_and_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Spark 3.5, on which this module is collected too, has no such module.
    from pyspark.sql.connect.client.retries import Retrying

    now = 1.0
    monkeypatch.setattr(pyspark_internals, "monotonic", lambda: now)
    session = create_autospec(SparkSession, client=create_autospec(SparkConnectClient))
    set_connect_retries(session, 2)
    ((policies,), _) = session.client.set_retry_policies.call_args

    def asked_in_vain() -> int:
        """Ask the server until its client gives up; return how often it waited."""
        waits: list[float] = []
        with pytest.raises(NoAnswer):
            for attempt in Retrying(policies, sleep=waits.append):
                with attempt:
                    raise NoAnswer
        return len(waits)

    with warnings.catch_warnings(record=True) as printed:
        assert [asked_in_vain() for _ in range(3)] == [2, 0, 0]
        now += pyspark_internals._GIVEN_UP_SECONDS
        assert [asked_in_vain() for _ in range(2)] == [2, 0]
    assert printed == []


def test_a_session_has_a_context_and_tells_of_its_jvm(spark: SparkSession) -> None:
    assert has_context()
    assert int(java_property(spark, "java.specification.version")) >= 17


def private_uses(tree: ast.AST) -> list[str]:
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            _PRIVATE_MODULES
        ):
            uses.append(node.module or "")
        if isinstance(node, ast.ImportFrom):
            uses += [name.name for name in node.names if name.name.startswith("_")]
        if isinstance(node, ast.Attribute) and _is_of_another(node):
            uses.append(node.attr)
    return uses


def _is_of_another(node: ast.Attribute) -> bool:
    """Whether an attribute is private to something else than the class that it stands in."""
    is_private = node.attr.startswith("_") and not node.attr.endswith("__")
    is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return is_private and not is_own and node.attr not in _PUBLIC


@pytest.mark.scenario
@pytest.mark.unit
def test_no_other_module_uses_it_nor_what_is_private_to_another_library() -> None:
    using = {
        file.relative_to(_HOME).as_posix()
        for file in _HOME.rglob("*.py")
        if private_uses(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert using == {
        "iceberg/catalog/pyiceberg_internals.py",
        "iceberg/frames/pyspark_internals.py",
    }
