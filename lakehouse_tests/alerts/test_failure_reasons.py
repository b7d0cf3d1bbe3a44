"""Reasons of failures contain no values of rows."""

import pytest
from dagster._utils.error import SerializableErrorInfo

from lakehouse.alerts.failure_reasons import describe_without_values, reason_of


def error(
    kind: str, text: str, module: str = "", cause: SerializableErrorInfo | None = None
) -> SerializableErrorInfo:
    return SerializableErrorInfo(f"{module}{kind}: {text}\n", [], kind, cause, None)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (
            error("NotADirectoryError", "[Errno 20] Not a directory: '/data/inbox/fruits'"),
            "NotADirectoryError: [Errno 20] Not a directory: '/data/inbox/fruits'",
        ),
        (
            error("OSError", "[Errno 28] No space left on device"),
            "OSError: [Errno 28] No space left on device",
        ),
        (
            error(
                "DagsterUserCodeUnreachableError",
                "Could not reach user code server. gRPC Error code: UNAVAILABLE",
                "dagster._core.errors.",
                error("_InactiveRpcError", "<_InactiveRpcError of RPC that terminated with:"),
            ),
            (
                "DagsterUserCodeUnreachableError: Could not reach user code server. gRPC Error"
                " code: UNAVAILABLE"
            ),
        ),
        (
            error("ValueError", "cannot read 'zoe'"),
            "ValueError; its text can contain data, see the run.",
        ),
        (
            error("OSError", "[Errno 5] zoe@example.com is no number: 'x'"),
            "OSError; its text can contain data, see the run.",
        ),
    ],
)
def test_a_reason_contains_no_data(failure: SerializableErrorInfo, reason: str) -> None:
    assert reason_of(failure, None) == reason


def test_an_error_of_the_lakehouse_comes_before_its_cause() -> None:
    own = error("SetupError", "No Java.", "lakehouse.errors.", error("MemoryError", "none"))
    assert reason_of(own, None) == "SetupError: No Java."


def test_a_path_of_the_system_stays_and_a_value_does_not() -> None:
    assert (
        describe_without_values(
            FileNotFoundError(2, "No such file or directory", "/data/a.csv")
        )
        == "[Errno 2] No such file or directory: '/data/a.csv'"
    )
    assert describe_without_values(ValueError("cannot read 'zoe'")) == "cannot read …"
