"""A webhook that listens for the time of a test."""

from collections.abc import Iterator

import pytest

from lakehouse.orchestration.instance import open_instance
from lakehouse.settings import Settings
from lakehouse_tests.monitoring.receiver import Receiver, receiving
from lakehouse_tests.monitoring.watch import Watch


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def watch(settings: Settings) -> Iterator[Watch]:
    """A small project on an instance of the test's own, at which somebody has looked once."""
    with open_instance(settings) as instance:
        found = Watch(settings, instance)
        assert found.says() == []
        yield found
