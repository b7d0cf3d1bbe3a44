"""Places outside of the home are reported with their owner."""

from dataclasses import replace

import pytest

from lakehouse.privacy.places.mask_files import places_elsewhere, sent_alerts

pytestmark = pytest.mark.unit

POSTGRES = "storage: {postgres: {postgres_db: {hostname: db}}}"
MYSQL = "storage: {mysql: {mysql_url: {env: URL}}}"
CUSTOM = "storage: {custom: {module: a.b, class: OurStorage, config: {}}}"
S3_LOGS = (
    "compute_logs: {module: dagster_aws.s3, class: S3ComputeLogManager, config: {bucket: b}}"
)
OUTSIDE = "storage: {sqlite: {base_dir: /var/dagster}}"
BY_ENVIRONMENT = "storage: {sqlite: {base_dir: {env: FOLDER}}}"


def named(settings, configuration=""):
    settings.dagster_home.mkdir(parents=True, exist_ok=True)
    (settings.dagster_home / "dagster.yaml").write_text(configuration)
    return [place.place for place in places_elsewhere(settings)]


@pytest.mark.parametrize(
    ("configuration", "place"),
    [
        (POSTGRES, "storage of Dagster: postgres"),
        (MYSQL, "storage of Dagster: mysql"),
        (CUSTOM, "storage of Dagster: OurStorage"),
        (S3_LOGS, "compute_logs of Dagster: S3ComputeLogManager"),
        (OUTSIDE, "storage of Dagster: sqlite"),
        (BY_ENVIRONMENT, "storage of Dagster: sqlite"),
    ],
)
def test_a_storage_outside_of_the_home_is_named(settings, configuration, place):
    assert named(settings, configuration) == [place]


def test_a_folder_in_the_home_is_none(settings):
    folder = settings.home / "dagster" / "elsewhere"

    assert named(settings, f"storage: {{sqlite: {{base_dir: '{folder}'}}}}") == []
    assert named(settings) == []


def test_the_instance_of_a_new_home_keeps_nothing_elsewhere(settings):
    from lakehouse.orchestration.runs.instance import dagster_home

    dagster_home(settings)

    assert list(places_elsewhere(settings)) == []


def test_a_spark_that_keeps_files_outside_of_the_home_is_named(settings):
    server = replace(settings, spark_remote="sc://spark.example.com:15002/;token=secret")
    cluster = replace(settings, spark_master="spark://one:7077")
    tunnel = replace(settings, spark_remote="sc://localhost:15002/;token=secret")

    assert named(server) == ["the Spark Connect server on spark.example.com"]
    assert named(cluster) == ["the Spark cluster of spark://one:7077"]
    assert named(tunnel) == ["the Spark Connect server on localhost"]


def test_where_alerts_were_sent_is_named_without_the_secret(settings):
    sending = replace(settings, alert_urls=("json://user:secret@example.com/hook",))

    (place,) = sent_alerts(sending)

    assert place.place.startswith("alerts that were sent to json-")
    assert "secret" not in str(place)
    assert place.outcome == "not reached"
