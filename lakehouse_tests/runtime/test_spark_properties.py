"""What Spark is told its configuration by."""

from dataclasses import replace

import pytest

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.runtime.processes import Process
from lakehouse.runtime.spark_properties import (
    properties_text,
    remove_properties,
    write_properties,
)
from lakehouse.runtime.spark_server import SparkServer, forget, publish
from lakehouse.runtime.temporary_folders import prepare_temporary_folder, temporary_folder


def test_a_backslash_and_the_end_of_a_line_stand_for_themselves():
    text = properties_text({"spark.a": "b\\c", "spark.d": "e\nf\r"})
    assert text == "spark.a=b\\\\c\nspark.d=e\\nf\\r\n"


def test_it_is_a_file_for_nobody_else_until_it_is_removed(tmp_path, settings):
    file = write_properties(settings, tmp_path, {"spark.a": "1"})
    assert file.read_text() == "spark.a=1\n"
    assert file.stat().st_mode & 0o777 == 0o600

    remove_properties(tmp_path)
    remove_properties(tmp_path)
    assert not file.exists()


@pytest.mark.parametrize("end", ["", "\n", "\\"])
def test_it_comes_after_the_defaults_of_spark_which_it_takes_the_place_of(
    tmp_path, settings, end
):
    cluster = ClusterSettings.from_env({"SPARK_CONF_DIR": str(tmp_path / "conf")})
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.yarn.queue night{end}")

    told = replace(settings, cluster=cluster)
    file = write_properties(told, tmp_path, {"spark.a": "1"})
    assert file.read_text() == f"spark.yarn.queue night{end}\n\nspark.a=1\n"


@pytest.mark.parametrize("step", [publish, forget])
def test_what_a_server_is_started_with_is_removed_when_it_answers_or_ends(settings, step):
    prepare_temporary_folder(settings, is_server=True)
    folder = temporary_folder(settings, is_server=True)
    file = write_properties(settings, folder, {"spark.a": "1"})

    step(settings, SparkServer(1, "T0ken", Process.current()))
    assert not file.exists()
