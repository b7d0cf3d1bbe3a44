"""One Spark session for each worker of a run; on it a fresh catalog for each test: SQLite, or
Glue and S3 on moto.
"""

import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING
from uuid import uuid4

import hypothesis
import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse.settings import Settings
from lakehouse.storage.atomic_files import keep_private
from lakehouse_tests.aws_models import read_once
from lakehouse_tests.examples import examples
from lakehouse_tests.ministack import running_ministack
from lakehouse_tests.processes import STARTS_QUICKLY
from lakehouse_tests.savepoint import FilledOnce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.storage.s3 import S3ObjectStore

# How long an example takes is no property: a busy machine takes longer.
# New examples are for `make soak`: elsewhere they would fail a change that did not cause it.
hypothesis.settings.register_profile(
    "lakehouse",
    deadline=None,
    max_examples=examples(50, 500),
    derandomize=not os.environ.get("SOAK"),
)
hypothesis.settings.load_profile("lakehouse")

pytest_plugins = ["lakehouse.testing"]

KINDS = ("unit", "spark", "e2e")
REGION = "eu-central-1"
# What a developer's shell may hold must not decide what a test does. Credentials reach the JVM
# only at its start.
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    # The second compiler pays off after minutes, and costs half of the processor until then.
    "JDK_JAVA_OPTIONS": f"-XX:TieredStopAtLevel=1 {STARTS_QUICKLY}",
}
# Each test is a plan and some classes of its own, which run once.
_SESSION_JVM = f"-XX:TieredStopAtLevel=1 -XX:+UseParallelGC {STARTS_QUICKLY}"
_FEW_ROWS = {
    # Compiled code pays off over many rows; over few, each plan is interpreted sooner than
    # compiled. The tests of whole commands run on compiled code.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What Spark's own UI would show of a query is put into words at each, and nobody looks.
    "spark.sql.ui.explainMode": "simple",
}
_UNSET = (
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_ENDPOINT_URL",
    "SPARK_REMOTE",
    "DAGSTER_HOME",
)
_KEPT = ("LAKEHOUSE_CACHE", "LAKEHOUSE_ICEBERG")
_GARBAGE_IS_LOOKED_FOR = (20_000, 20, 20)
"""After how many new objects, and how many looks at the youngest and at the next; Python's own
are 700, 10 and 10.
"""
ON_GLUE = bool(os.environ.get("ON_GLUE"))
"""Whether the tests of the engine that run on the embedded catalog run on Glue instead, as
`make test-glue-catalog` has them.
"""


def pytest_configure(config: pytest.Config) -> None:
    for name in [
        *_UNSET,
        *(name for name in os.environ if name.startswith("LAKEHOUSE_") and name not in _KEPT),
    ]:
        os.environ.pop(name, None)
    os.environ.update(_ENVIRONMENT)
    # As every process of the lakehouse does; a home that a test makes by hand is then like one
    # of its own.
    keep_private()
    # What was started in the background ignores Ctrl-C, and so would each process that a test
    # starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Modules and tests stay until the end: to look through them for garbage again and again took
    # a fifth of the time of the tests without Spark.
    gc.set_threshold(*_GARBAGE_IS_LOOKED_FOR)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests without a kind by whether they use the session, and put `e2e` tests that are no
    scenario into the tier `long`.

    Files with scenarios come first, then those with Spark, so that no worker ends with a long one.

    :raises pytest.UsageError: if a unit test uses the Spark session.
    """
    for item in items:
        if not any(item.get_closest_marker(kind) for kind in KINDS):
            item.add_marker("spark" if "spark" in getattr(item, "fixturenames", ()) else "unit")
        if item.get_closest_marker("e2e") and not item.get_closest_marker("scenario"):
            item.add_marker("long")
        if item.get_closest_marker("unit") and "spark" in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(f"{item.nodeid} is marked unit and uses the Spark session")
    markers_by_path: dict[Path, set[str]] = {}
    for item in items:
        markers_by_path.setdefault(item.path, set()).update(
            mark.name for mark in item.iter_markers()
        )
    items.sort(
        key=lambda item: (
            not markers_by_path[item.path] & {"e2e", "scenario"},
            "spark" not in markers_by_path[item.path],
        )
    )


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of all later looks for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_dagster_instance() -> None:
    """Forget an instance of Dagster that a test before kept open, as a failed one does with all
    that it named.

    Dagster asks it when definitions are loaded, and it may be gone.
    """
    if module := sys.modules.get("dagster._core.storage.defs_state.base"):
        module._current_storage.set(None)


@pytest.fixture(scope="session", autouse=True)
def dagster_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Empty databases of Dagster, made once."""
    from lakehouse_tests.dagster_homes import copy_databases

    with pytest.MonkeyPatch.context() as patch:
        copy_databases(patch, settings_at(tmp_path_factory.mktemp("dagster") / "home"))
        yield


@pytest.fixture(scope="session", autouse=True)
def catalogs_without_waiting() -> Iterator[None]:
    """Do not wait for the disk at each commit to a catalog in SQLite."""
    from lakehouse_tests.unsynced_catalogs import do_not_wait

    with do_not_wait():
        yield


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of the test's own, which is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def settings(home: Path) -> Settings:
    """What a process on this machine would be told, with a home of the test's own."""
    return settings_at(home)


def settings_at(home: Path) -> Settings:
    """Return what a process on this machine would be told, with a home that is given."""
    return replace(Settings.from_env(), home=home, spark_memory="3g")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FilledOnce:
    """A home that the tests of a file share, each of which finds it as the first one did."""
    return FilledOnce(tmp_path_factory.mktemp("filled_"))


@pytest.fixture(scope="module")
def filled_by(tmp_path_factory: pytest.TempPathFactory) -> Callable[[object], FilledOnce]:
    """Gives the home that the tests of a file share who fill it by the same code."""
    return cache(lambda _: FilledOnce(tmp_path_factory.mktemp("filled_")))


@pytest.fixture(scope="session")
def s3a_jars() -> None:
    """What Spark reads a bucket by; `make setup` fetches what this machine's own deployment
    needs.
    """
    from lakehouse.spark import jars
    from lakehouse.spark.jar_download import fetch

    fetch(Settings.from_env(), lambda _: None, jars.s3a())


@pytest.fixture(scope="session")
def spark(s3a_jars: None, tmp_path_factory: pytest.TempPathFactory) -> "SparkSession":
    """The one session of the run; it knows the catalogs that the engines register on it."""
    from lakehouse.spark import session_configuration, spark_session
    from lakehouse_tests.local_files import set_permissions_without_processes

    # Of the catalog file, which not every Iceberg reads, nothing is read at the start.
    settings = on_aws(settings_at(tmp_path_factory.mktemp("session")))
    few_rows = [f"-D{name}={value}" for name, value in _FEW_ROWS.items()]
    with pytest.MonkeyPatch.context() as patch:
        # Spark reads them as it reads its own file of settings, which the product has none of.
        patch.setenv("JDK_JAVA_OPTIONS", " ".join([_SESSION_JVM, *few_rows]))
        # Eight tasks of no row each take longer than one of all rows.
        patch.setattr(session_configuration, "_SHUFFLE_PARTITIONS", "1")
        session = spark_session.open_session(settings, Catalog.of(settings))
    set_permissions_without_processes(session)
    return session


@pytest.fixture(scope="session")
def moto(s3a_jars: None) -> Iterator[str]:
    """The address of a server that answers as Glue, S3 and SNS; the JVM reaches no patched
    client.
    """
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    # Every request would stand in the report of a test that fails.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        read_once(patch)
        yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of another server that answers as Glue and S3, and refuses the second of two
    commits as AWS says that Glue does; skips where `.ci/ministack` has not run.
    """
    program = Path(__file__).parents[1] / ".venv-ministack" / "bin" / "ministack"
    if not program.is_file():
        assert not os.environ.get("REQUIRE_MINISTACK"), ".ci/ministack has not run."
        pytest.skip("MiniStack is not here; .ci/ministack installs it")
    with running_ministack(program, tmp_path_factory.mktemp("ministack")) as address:
        yield address


@pytest.fixture
def aws_settings(moto: str, settings: Settings) -> Settings:
    """The settings of an `aws` deployment, on an account that holds one empty bucket and
    nothing else.
    """
    return on_empty_account(moto, settings)


def on_empty_account(moto: str, settings: Settings) -> Settings:
    """Empty the account, and return the settings of an `aws` deployment on it."""
    import requests

    requests.post(f"{moto}/moto-api/reset", timeout=30).raise_for_status()
    return with_bucket(moto, settings)


def with_bucket(address: str, settings: Settings) -> Settings:
    """Make the bucket of an empty account, and return the settings of an `aws` deployment on
    it.
    """
    import boto3

    location = {"LocationConstraint": REGION}
    boto3.client("s3", endpoint_url=address).create_bucket(
        Bucket="lake", CreateBucketConfiguration=location
    )
    return replace(on_aws(settings), endpoint_url=address)


def keep_versions(store: "S3ObjectStore") -> None:
    """Have a bucket keep the versions of what is overwritten or removed."""
    store.client.put_bucket_versioning(
        Bucket=store.bucket, VersioningConfiguration={"Status": "Enabled"}
    )


def on_aws(settings: Settings) -> Settings:
    """Return the settings of an `aws` deployment with the tests' bucket."""
    return replace(settings, deployment="aws", bucket="lake", region=REGION)


@pytest.fixture
def embedded_engine(
    request: pytest.FixtureRequest, spark: "SparkSession", settings: Settings
) -> Iterator[Engine]:
    """An engine on a catalog in SQLite, for what has nothing to do with the kind of catalog; on
    Glue where `ON_GLUE` is set, so that this is seen now and then.
    """
    if ON_GLUE:
        yield request.getfixturevalue("glue_engine")
        return
    engine = engine_on(spark, skip_old_iceberg(settings))
    yield engine
    forget(spark, engine)


def skip_old_iceberg(settings: Settings) -> Settings:
    """Skip what is on the embedded catalog where it is refused; return the settings elsewhere."""
    if settings.iceberg == "1.7.1":
        pytest.skip("Iceberg 1.7.1 is refused on the embedded catalog")
    return settings


@pytest.fixture
def filled_engine(
    request: pytest.FixtureRequest,
    spark: "SparkSession",
    filled_by: Callable[[object], FilledOnce],
) -> Iterator[Callable[[FunctionType], Engine]]:
    """Fills an engine as `embedded_engine` is: that of SQLite once for all tests of a file, each
    of which finds its tables as the first one did.
    """
    engines = []

    def fill_once(fill: FunctionType) -> Engine:
        if ON_GLUE:
            engine: Engine = request.getfixturevalue("embedded_engine")
            fill(engine)
            return engine
        filled = filled_by(fill.__code__)
        # What was made on it belongs to a catalog of its name.
        name = filled.home.parent.name
        settings = skip_old_iceberg(settings_at(filled.home))
        engine = engine_on(spark, settings, name)
        engines.append(engine)
        filled.bring_back(lambda: fill(engine))
        return engine

    yield fill_once
    for engine in engines:
        forget(spark, engine)


@pytest.fixture
def glue_engine(spark: "SparkSession", aws_settings: Settings) -> Iterator[Engine]:
    """An engine on Glue and S3."""
    engine = engine_on(spark, aws_settings)
    yield engine
    forget(spark, engine)


@pytest.fixture(params=["embedded", "glue"])
def engine(request: pytest.FixtureRequest, spark: "SparkSession") -> Engine:
    """An engine on each kind of catalog in turn."""
    return request.getfixturevalue(f"{request.param}_engine")


whatever_the_catalog = pytest.mark.parametrize("engine", ["embedded"], indirect=True)
"""For a test among those on both catalogs of what Spark does with rows: the catalog has no say
in it.
"""


def on_embedded_alone(reason: str) -> pytest.MarkDecorator:
    """For tests of the engine that Glue has no say in, or cannot show; the reason is of one
    clause.
    """
    return pytest.mark.skipif(ON_GLUE, reason=f"on the embedded catalog alone: {reason}")


def newer_iceberg(lack: str) -> pytest.MarkDecorator:
    """For a test of what Iceberg 1.7.1, that of AWS Glue 5.0, does otherwise."""
    is_old = os.environ.get("LAKEHOUSE_ICEBERG") == "1.7.1"
    return pytest.mark.skipif(is_old, reason=f"Iceberg 1.7.1 {lack}")


with_format_3 = newer_iceberg("would write deleted rows of format 3 as others refuse them")
"""For a test of a table of format 3, which is refused there."""
with_erased_format_3 = pytest.mark.skipif(
    is_spark_3(), reason="Spark 3.5 cannot delete rows of format 3 by position"
)


def engine_on(spark: "SparkSession", settings: Settings, name: str | None = None) -> Engine:
    """Return an engine on the catalog of some settings, which the session is told of by a new
    name where none is given.
    """
    from lakehouse.spark.spark_session import register

    # Spark opens a catalog once for each name.
    catalog = Catalog.of(settings, name=name or f"lakehouse_{uuid4().hex[:8]}")
    register(spark, catalog)
    return Engine(catalog, lambda: spark, settings.lock_dir, masking_key=b"testing")


def forget(spark: "SparkSession", engine: Engine) -> None:
    """Take what a session was told of the catalog of a test back: Spark sends its whole
    configuration with each task, and keeps it with each job, which took longer with each test.
    """
    for name in engine.catalog.spark_configuration:
        spark.conf.unset(name)


@pytest.fixture(scope="session")
def readers() -> Path:
    """The environment that `.ci/readers` makes, with programs of others that read what the
    lakehouse writes for them; skips where nobody made it.
    """
    folder = Path(os.environ.get("READERS") or Path(__file__).parents[1] / ".venv-readers")
    if not (folder / "bin" / "datacontract").is_file():
        assert not os.environ.get("REQUIRE_READERS"), ".ci/readers has not run."
        pytest.skip("the readers of others are not here; .ci/readers installs them")
    return folder
