"""Reasons of failures contain no values of rows."""

import pytest
from dagster._utils.error import SerializableErrorInfo

from lakehouse.alerts.failure_reasons import reason_of, remove_values


def error(
    kind: str, text: str, module: str = "", cause: SerializableErrorInfo | None = None
) -> SerializableErrorInfo:
    return SerializableErrorInfo(f"{module}{kind}: {text}\n", [], kind, cause, None)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
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


def test_values_are_removed_from_a_message() -> None:
    assert remove_values("cannot read 'zoe' of a@example.com") == "cannot read … of …"
