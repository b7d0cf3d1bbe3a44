"""A webhook that listens for the time of a test."""

from collections.abc import Iterator

import pytest

from lakehouse_tests.monitoring.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found
