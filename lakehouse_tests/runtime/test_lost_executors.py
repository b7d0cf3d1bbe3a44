"""A client of a Connect server whose executors are all gone: what it waits for ends by name, and
only then.
"""

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.errors import SetupError
from lakehouse.iceberg.metadata.error_explanations import is_spark_gone, known_error
from lakehouse.runtime import lost_executors
from lakehouse.runtime.lost_executors import StarvedOperations, no_executor_left
from lakehouse.runtime.spark_master import Application, MasterState, Worker
from lakehouse.settings import Settings

MASTER = "spark://10.0.0.1:7077"
WORKER = Worker(cores=2, free_cores=0, memory_mb=1024, free_memory_mb=0)


class Session:
    """Stands for a session of Spark Connect: a task of its own ends when it is let."""

    def __init__(self) -> None:
        self.conf = {"spark.app.id": "app-7"}
        self.gets_executor = Event()
        self.tags: list[str] = []
        self.interrupted: list[str] = []

    def range(self, _: int) -> "Session":
        """Stand for one row."""
        return self

    def count(self) -> int:
        """Count it, on an executor."""
        self.gets_executor.wait(30)
        return 1

    def addTag(self, tag: str) -> None:  # noqa: N802
        """Name what this thread asks for."""
        self.tags.append(tag)

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        """End what was named."""
        self.interrupted.append(tag)
        self.gets_executor.set()

    def interruptOperation(self, operation_id: str) -> None:  # noqa: N802
        """End what waits."""
        self.interrupted.append(operation_id)


@pytest.fixture
def session() -> Iterator[Session]:
    """A session that gets no executor."""
    session = Session()
    yield session
    session.gets_executor.set()


@pytest.fixture
def client(settings: Settings) -> Settings:
    """Settings of a client that waits for a second."""
    return replace(
        settings, spark_remote="sc://spark:15002", cluster=ClusterSettings(wait_seconds=1)
    )


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes where a test lets it."""
    moment = [0.0]
    monkeypatch.setattr(lost_executors, "monotonic", lambda: moment[0])
    return moment


def let_master_say(monkeypatch: pytest.MonkeyPatch, *cores: int) -> None:
    """Let the applications of the master have some cores; the first one is the server's."""
    applications = tuple(
        Application(f"app-{number}", "lakehouse lake", held)
        for number, held in enumerate(cores, 7)
    )
    state = MasterState((WORKER,), applications)
    monkeypatch.setattr(lost_executors, "read_master", lambda *_: state if cores else None)


def tell(
    operations: StarvedOperations, now: list[float], second: float, tasks: int = 0
) -> None:
    """Let the server tell of an operation at some second."""
    now[0] = second
    operations(inflight_tasks=tasks, operation_id="op", done=False, stages=())


def test_what_waits_for_an_executor_that_does_not_come_ends_by_name(
    client, session, now, monkeypatch
):
    let_master_say(monkeypatch, 0, 2)
    operations = StarvedOperations(session, client, MASTER)
    tell(operations, now, 0)
    tell(operations, now, 0.4)
    with pytest.raises(SetupError) as raised:
        tell(operations, now, 0.5)

    assert str(raised.value).startswith(
        f"All executors on {MASTER} ended in the middle of it, and no other came within 1 s:"
        " 0 of its 2 cores"
    )
    # What others of the session wait for ends by itself.
    assert session.interrupted == [*session.tags, "op"]


def test_a_task_at_work_begins_the_wait_anew(client, session, now, monkeypatch):
    let_master_say(monkeypatch, 0)
    operations = StarvedOperations(session, client, MASTER)
    for second, tasks in enumerate((0, 1) * 5):
        tell(operations, now, second / 3, tasks)
    operations(inflight_tasks=0, operation_id="op", done=True, stages=())
    tell(operations, now, 100)


@pytest.mark.parametrize("cores", [(1,), (), (2, 0)])
def test_nothing_ends_where_the_server_has_cores_or_no_master_tells(
    client, session, now, monkeypatch, cores
):
    let_master_say(monkeypatch, *cores)
    operations = StarvedOperations(session, client, MASTER)
    for second in range(10):
        tell(operations, now, second)


def test_nothing_ends_where_the_driver_works_and_an_executor_would_come(
    client, session, now, monkeypatch
):
    let_master_say(monkeypatch, 0)
    session.gets_executor.set()
    operations = StarvedOperations(session, client, MASTER)
    for second in range(10):
        tell(operations, now, second)


def test_a_job_that_was_cancelled_for_it_says_no_more_than_that(client):
    error = no_executor_left(client, MASTER, MasterState())
    text = (
        "Py4JJavaError: An error occurred while calling o7.append.\n:"
        f" org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 3 cancelled {error}"
        " SQLSTATE: XXKDA\n\tat org.apache.spark.Foo(Foo.scala:1)\nCaused by:"
        f" java.lang.Exception: {error}"
    )

    assert known_error(text) == str(error)
    assert is_spark_gone(RuntimeError(text))
