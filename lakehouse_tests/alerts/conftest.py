"""Fixtures: a webhook and a small project."""

from collections.abc import Iterator

import pytest

from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.settings import Settings
from lakehouse_tests.alerts.receiver import Receiver, receiving
from lakehouse_tests.alerts.watch import Watch


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def watch(settings: Settings) -> Iterator[Watch]:
    """A small project after its first round."""
    with open_instance(settings) as instance:
        found = Watch(settings, instance)
        assert found.titles() == []
        yield found
