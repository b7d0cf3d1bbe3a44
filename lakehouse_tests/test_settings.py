"""What the environment may say, and what is answered where it says something else."""

from pathlib import Path

import pytest

from lakehouse.errors import SettingsError
from lakehouse.orchestration.table_jobs.job_choice import TableJobs
from lakehouse.settings import Settings, TableJob


def test_nothing_has_to_be_set(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    settings = Settings.from_env({})

    assert settings.deployment == "local"
    assert settings.home == tmp_path / ".lakehouse"
    assert settings.warehouse == f"file://{tmp_path}/.lakehouse/warehouse"
    assert settings.cache_dir == Path("~/.cache/lakehouse").expanduser()


def test_the_home_is_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    assert Settings.from_env({"LAKEHOUSE_HOME": "here"}).home == tmp_path / "here"
    assert Settings.from_env({"LAKEHOUSE_HOME": "~/lake"}).home == Path("~/lake").expanduser()


def test_a_cache_follows_the_desktop_standard_unless_it_is_named():
    assert Settings.from_env({"XDG_CACHE_HOME": "/x"}).cache_dir == Path("/x/lakehouse")
    assert Settings.from_env(
        {"XDG_CACHE_HOME": "/x", "LAKEHOUSE_CACHE": "/y"}
    ).cache_dir == Path("/y")


def test_on_aws_tables_are_in_the_bucket():
    env = {
        "LAKEHOUSE_DEPLOYMENT": "aws",
        "LAKEHOUSE_BUCKET": "lake",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }
    settings = Settings.from_env(env)

    assert settings.warehouse == "s3://lake/warehouse"
    assert settings.region == "eu-west-1"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"LAKEHOUSE_DEPLOYMENT": "moon"}, "expected one of local, aws"),
        ({"LAKEHOUSE_DEPLOYMENT": "aws"}, "LAKEHOUSE_BUCKET is not set"),
        ({"SPARK_REMOTE": "localhost:15002"}, "expected sc://HOST:PORT"),
        ({"LAKEHOUSE_SPARK_MEMORY": "plenty"}, "such as 512m or 4g"),
        ({"LAKEHOUSE_SPARK_MASTER": "local[0]"}, "such as local[*]"),
        ({"LAKEHOUSE_SPARK_MASTER": "spark://host"}, "spark://host:7077"),
        ({"LAKEHOUSE_ALERT_URLS": "json://here/ slack"}, "entry 2 of 2"),
        ({"LAKEHOUSE_HEARTBEAT_URL": "ping.example"}, "the address of a web page"),
        ({"LAKEHOUSE_DOCS": "https://site.example"}, "expected a folder, or s3://"),
        ({"LAKEHOUSE_DEFINITIONS": "a b"}, "the name of a module"),
        ({"LAKEHOUSE_JOBS": "gold.*=lambda:x"}, "such as gold.*=glue:lakehouse"),
        ({"LAKEHOUSE_JOBS": "gold.*=glue:lakehouse"}, "LAKEHOUSE_DEPLOYMENT is 'local'"),
    ],
)
def test_an_invalid_setting_is_named_with_the_expected_form(env, expected):
    with pytest.raises(SettingsError) as raised:
        Settings.from_env(env)

    assert next(iter(env)) in str(raised.value)
    assert expected in str(raised.value)
    assert raised.value.next_step
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    "address",
    [
        "sc://spark",
        "sc://spark:15002",
        "sc://spark:15002/",
        "sc://10.0.0.7:15002/;token=a%3D%3D;use_ssl=true",
        "sc://[::1]:15002/;user_id=",
    ],
)
def test_an_address_of_spark_connect_is_taken(address):
    assert Settings.from_env({"SPARK_REMOTE": address}).spark_remote == address


@pytest.mark.parametrize(
    "address",
    [
        "sc://spark:15002;token=S3cret",
        "sc://spark:15002/;token=S3cret==",
        "sc://S3cret@spark:15002",
        "spark:15002/;token=S3cret",
        "sc://spark:99999/;token=S3cret",
    ],
)
def test_a_token_of_an_address_with_a_typing_error_is_not_shown(address):
    with pytest.raises(SettingsError, match=r"expected sc://HOST:PORT") as raised:
        Settings.from_env({"SPARK_REMOTE": address})
    assert "S3cret" not in f"{raised.value} {raised.value.next_step}"


def test_two_sparks_are_not_named_at_once():
    env = {"SPARK_REMOTE": "sc://spark:15002", "LAKEHOUSE_SPARK_MASTER": "spark://a:7077"}
    with pytest.raises(SettingsError, match="name two Sparks; expected one of them"):
        Settings.from_env(env)


def test_the_first_job_that_fits_a_table_computes_it():
    env = {
        "LAKEHOUSE_DEPLOYMENT": "aws",
        "LAKEHOUSE_BUCKET": "lake",
        "LAKEHOUSE_JOBS": "gold.big=glue:large gold.*=glue:lakehouse",
    }
    jobs = TableJobs(Settings.from_env(env))

    assert jobs.job_of("gold.big") == TableJob("gold.big", "large")
    assert jobs.job_of("gold.small") == TableJob("gold.*", "lakehouse")
    assert jobs.job_of("silver.big") is None


def test_addresses_that_may_hold_a_secret_are_not_shown():
    """Settings stand in tracebacks, and an error names which entry is wrong, and not what it
    is.
    """
    secret = "slack://T0ken/#data"
    assert "T0ken" not in repr(Settings.from_env({"LAKEHOUSE_ALERT_URLS": secret}))
    with pytest.raises(SettingsError) as raised:
        Settings.from_env({"LAKEHOUSE_ALERT_URLS": "T0ken"})
    assert "T0ken" not in str(raised.value)


@pytest.mark.parametrize(
    "name", ["a#b", "what?", "100%", "a%20b", "a,b", "two\nlines", "esc\x1b[31m"]
)
def test_a_home_whose_files_would_lie_elsewhere_is_rejected(tmp_path, name):
    with pytest.raises(
        SettingsError, match=r"LAKEHOUSE_HOME is .+; expected a path without"
    ) as raised:
        Settings.from_env({"LAKEHOUSE_HOME": str(tmp_path / name)})
    assert str(raised.value).isprintable()
    assert raised.value.exit_code == 2


def test_a_cache_that_java_would_take_for_two_is_rejected():
    with pytest.raises(SettingsError, match="LAKEHOUSE_CACHE is '/a:b', with ':' in it"):
        Settings.from_env({"LAKEHOUSE_CACHE": "/a:b"})


def test_a_home_that_cannot_be_made_is_named_with_why(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.touch()

    for home in (in_the_way, in_the_way / "below"):
        with pytest.raises(
            SettingsError, match=f"LAKEHOUSE_HOME is '{home}' .+; expected a folder"
        ) as failed:
            Settings.from_env({"LAKEHOUSE_HOME": str(home)}).make_home()
        assert "Set it to another folder" in str(failed.value)
