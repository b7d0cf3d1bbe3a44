"""A client of a Connect server whose executors are all gone: what it waits for ends by name, and
only then.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.errors import SetupError
from lakehouse.iceberg.metadata.error_explanations import has_spark_exited, known_error
from lakehouse.runtime import executors
from lakehouse.runtime.executors import PATIENCE, StarvedOperations, no_executor_left
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
    PATIENCE.restore()
    yield session
    session.gets_executor.set()
    PATIENCE.restore()


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
    monkeypatch.setattr(executors, "monotonic", lambda: moment[0])
    return moment


def let_master_say(monkeypatch: pytest.MonkeyPatch, *cores: int) -> None:
    """Let the applications of the master have some cores; the first one is the server's."""
    applications = tuple(
        Application(f"app-{number}", "lakehouse lake", held)
        for number, held in enumerate(cores, 7)
    )
    state = MasterState((WORKER,), applications)
    monkeypatch.setattr(executors, "read_master", lambda *_: state if cores else None)


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


def test_what_comes_after_it_in_the_run_waits_briefly(client, session, now, monkeypatch):
    monkeypatch.setattr(executors, "_AGAIN_SECONDS", 0.2)
    let_master_say(monkeypatch, 0)
    operations = StarvedOperations(session, client, MASTER)
    for begins, ends, said in ((0, 0.5, "1"), (0.6, 0.75, "0.2")):
        session.gets_executor.clear()
        tell(operations, now, begins)
        with pytest.raises(SetupError, match=f"no other came within {said} s"):
            tell(operations, now, ends)
    tell(operations, now, 3, tasks=1)
    assert PATIENCE.seconds(client) == 1


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


@pytest.fixture
def page(session: Session) -> Iterator[list[str]]:
    """The page of a driver, which tells of its executors by their names."""
    names: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_its = self.path == "/api/v1/applications/app-7/executors"
            self.send_response(200 if is_its else 404)
            self.end_headers()
            said = [{"id": name, "isActive": True} for name in ("driver", *names)]
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    session.conf |= {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.port": str(server.server_address[1]),
    }
    yield names
    server.shutdown()
    server.server_close()


def test_where_no_master_tells_the_page_of_the_driver_does(
    client, session, now, monkeypatch, page
):
    let_master_say(monkeypatch)
    operations = StarvedOperations(session, client, "k8s://https://host:6443")
    page.append("1")
    for second in range(10):
        tell(operations, now, second)
    page.clear()
    tell(operations, now, 10)
    with pytest.raises(SetupError, match="All executors on k8s://https://host:6443 ended"):
        tell(operations, now, 11)


def test_nothing_ends_by_the_page_of_another_application(
    client, session, now, monkeypatch, page
):
    let_master_say(monkeypatch)
    session.conf["spark.app.id"] = "app-8"
    operations = StarvedOperations(session, client, "yarn")
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
    error = no_executor_left(client, MASTER, MasterState(), 120)
    text = (
        "Py4JJavaError: An error occurred while calling o7.append.\n:"
        f" org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 3 cancelled {error}"
        " SQLSTATE: XXKDA\n\tat org.apache.spark.Foo(Foo.scala:1)\nCaused by:"
        f" java.lang.Exception: {error}"
    )

    assert known_error(text) == str(error)
    assert has_spark_exited(RuntimeError(text))
