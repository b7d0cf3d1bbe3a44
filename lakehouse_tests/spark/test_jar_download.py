"""Spark's resolver on a test repository: a jar is verified, or not stored."""

from dataclasses import replace

import pytest

from lakehouse.errors import SetupError
from lakehouse.spark import jars
from lakehouse.spark.jar_download import fetch
from lakehouse_tests.jar_repository import CONTENT, JAR, served_repository

pytestmark = pytest.mark.e2e


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A folder that is served as a repository, which Spark's own configuration names."""
    with served_repository(tmp_path / "repository") as (folder, address):
        conf = tmp_path / "conf"
        conf.mkdir()
        (conf / "spark-defaults.conf").write_text(f"spark.jars.repositories {address}\n")
        monkeypatch.setenv("SPARK_CONF_DIR", str(conf))
        yield folder


@pytest.fixture
def machine(settings, tmp_path):
    """Settings with an empty cache."""
    return replace(settings, cache_dir=tmp_path / "my cache")


def test_a_jar_is_fetched_and_kept(machine, repository):
    told = []
    fetch(machine, told.append, (JAR,))

    assert jars.path(machine, JAR).read_bytes() == CONTENT
    assert told == [1]
    assert sorted(path.name for path in machine.cache_dir.iterdir()) == ["jars", "jars.lock"]


def test_a_damaged_jar_is_fetched_again_and_the_rest_of_a_killed_set_up_is_dropped(
    machine, repository
):
    file = jars.path(machine, JAR)
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT[:100])
    (machine.cache_dir / ".fetching-killed" / "cache").mkdir(parents=True)

    fetch(machine, lambda _: None, (JAR,))
    assert file.read_bytes() == CONTENT
    assert not (machine.cache_dir / ".fetching-killed").exists()


@pytest.mark.long
def test_a_jar_that_is_not_what_is_pinned_is_not_kept(machine, repository):
    (repository / "small-1.0.jar").write_bytes(b"<html>Sign in to the network</html>")

    with pytest.raises(SetupError, match=r"It was fetched just now, and is not kept"):
        fetch(machine, lambda _: None, (JAR,))
    assert not jars.path(machine, JAR).exists()


def test_where_a_jar_cannot_be_fetched_the_resolver_is_heard(machine, repository):
    (repository / "small-1.0.jar").unlink()

    with pytest.raises(SetupError) as raised:
        fetch(machine, lambda _: None, (JAR,))
    said = str(raised.value)
    assert said.startswith("Spark's resolver could not fetch test.group:small:1.0. ")
    assert "check the network, and run `make setup` again" in said
    assert "\n" not in said
    log = machine.cache_dir / "resolver.log"
    assert str(log) in said
    assert "test.group#small;1.0" in log.read_text()
    assert list(machine.cache_dir.glob(".fetching-*")) == []
