"""A session on a cluster that gives it no executor: the wait ends, and with it what was asked."""

from dataclasses import replace
from threading import Event, current_thread

import pytest

from lakehouse.errors import SetupError
from lakehouse.settings.cluster_settings import ClusterSettings
from lakehouse.spark.executors import require_executor


class Session:
    """Stands for a session of Spark: a job ends when it is let, or with an error."""

    def __init__(self, master, error=None, runs_at_once=True):
        self.conf = {"spark.master": master, "spark.app.id": "app-7"}
        self.sparkContext = self
        self.error = error
        self.may_end = Event()
        self.cancelled = False
        self.thread = None
        if runs_at_once:
            self.may_end.set()

    def range(self, _):
        return self

    def count(self):
        self.thread = current_thread()
        self.may_end.wait(30)
        if self.error:
            raise self.error
        return 1

    def cancelAllJobs(self):  # noqa: N802
        self.cancelled = True
        self.error = RuntimeError("cancelled")
        self.may_end.set()

    interruptAll = cancelAllJobs  # noqa: N815


@pytest.fixture
def on_cluster(settings):
    """Settings of a process that waits for a second."""
    cluster = ClusterSettings(wait_seconds=1)
    return replace(settings, spark_master="spark://10.0.0.1:7077", cluster=cluster)


def test_no_executor_is_waited_for_on_this_machine(settings):
    require_executor(Session("local[*]", runs_at_once=False), settings)


def test_the_wait_for_an_executor_ends_and_with_it_the_task(on_cluster):
    session = Session(on_cluster.spark_master, runs_at_once=False)
    with pytest.raises(SetupError, match=r"No executor came within 1 s on spark://10\.0\.0\.1"):
        require_executor(session, on_cluster)

    assert session.cancelled
    session.thread.join(10)  # A pool waits for its tasks, not for its threads.
    assert not session.thread.is_alive()


def test_a_client_leaves_no_task_to_its_server(on_cluster):
    remote = replace(on_cluster, spark_master="local[*]", spark_remote="sc://spark:15002")
    session = Session("spark://10.0.0.1:7077", runs_at_once=False)
    with pytest.raises(SetupError, match="No executor came within 1 s"):
        require_executor(session, remote)

    assert session.cancelled
