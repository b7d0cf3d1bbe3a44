"""All settings of the lakehouse, typed and validated; the only reader of the environment."""

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, cast

from lakehouse.errors import SettingsError
from lakehouse.settings.cluster_settings import STANDALONE, ClusterSettings
from lakehouse.settings.project_file import MODULE_NAME, ProjectFile, find_project_file
from lakehouse.settings.setting_forms import (
    CONNECT,
    MEMORY,
    SECRET_ADDRESS,
    VERSION,
    Form,
    absolute_place,
    read_path,
    read_value,
)

Deployment = Literal["local", "aws"]
_DEPLOYMENT = Form("local|aws", "one of local, aws")
_DEFINITIONS = Form(MODULE_NAME, "the name of a module, such as shop.definitions")
_SITE = Form(r"s3://[^/]+(/.*)?|(?!\S*://).+", "a folder, or s3://bucket/prefix")
_MASTER = Form(
    r"local(\[(\*|[1-9]\d*)(, *[1-9]\d*)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]"
    r"|spark://[^,/:]+:\d+(,[^,/:]+:\d+)*|k8s://.+|yarn",
    "a master of Spark, such as local[*], local[2], spark://host:7077, k8s://… or yarn",
)
_JOB = re.compile(r"([^=\s]+)=glue:(\S+)")

SAMPLES = "lakehouse.definitions"
"""The sample project, used outside of other projects."""
_NOT_IN_A_HOME = "#?%,"
"""Characters that end or escape a URI path; a comma separates Spark's temporary folders."""
_NOT_IN_A_CACHE = "#?%,:"
"""A colon also separates jars in Java's class path."""


@dataclass(frozen=True)
class TableJob:
    """A job of AWS Glue that computes some tables."""

    tables: str
    """A pattern of table names, such as `gold.*`."""
    name: str


@dataclass(frozen=True)
class Settings:
    """The settings of a process; all local files are below `home`, except `cache_dir`."""

    home: Path
    deployment: Deployment = "local"
    bucket: str | None = None
    """Bucket of the `aws` deployment."""
    region: str | None = None
    endpoint_url: str | None = None
    """The endpoint of an emulator of S3, Glue and SNS."""
    spark_remote: str | None = None
    """A Spark Connect address (`sc://host:port`)."""
    spark_master: str = "local[*]"
    spark_memory: str | None = None
    """Memory of the driver, if set."""
    default_spark_memory: ClassVar[str] = "2g"
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """Settings of executors and driver for distributed Spark."""
    iceberg: str = "1.12.0"
    """The version of the Iceberg jars."""
    jobs: tuple[TableJob, ...] = ()
    """The tables that AWS jobs compute; the first match applies."""
    java_home: Path | None = None
    search_path: str = ""
    """The `PATH` on which `java` is searched."""
    cache_dir: Path = Path("~/.cache/lakehouse")
    masking_key: str | None = None
    """The key that masks personal data; by default created once in the home."""
    alert_urls: tuple[str, ...] = field(default=(), repr=False)
    """Recipients of all alerts: apprise URLs and ARNs of SNS topics."""
    alert_routes: Path | None = None
    """The TOML file with routes of alerts; default: `alerts.toml` in the home, if it exists."""
    heartbeat_url: str | None = field(default=None, repr=False)
    """Called after each evaluation of alerts."""
    openlineage_url: str | None = field(default=None, repr=False)
    """The endpoint that also receives OpenLineage events."""
    openlineage_key: str | None = field(default=None, repr=False)
    """Sent to that endpoint as `Authorization: Bearer …`."""
    name: str = ""
    """The name of this lakehouse for people who have several; see `title`."""
    ui_url: str | None = None
    """The address of Dagster's UI, used for links in alerts."""
    docs: str | None = None
    """Where the site is generated every five minutes: a folder, or `s3://bucket/prefix`."""
    definitions: str = SAMPLES
    """The module with the project; default: that around the working directory."""
    project_root: Path | None = None
    """The folder of that project; None outside of one."""

    @classmethod
    def from_env(
        cls, env: Mapping[str, str] | None = None, *, folder: Path | None = None
    ) -> "Settings":
        """Read the environment, in a folder of a project; raises SettingsError."""
        env = os.environ if env is None else env
        deployment = cast(
            Deployment, read_value(env, "LAKEHOUSE_DEPLOYMENT", _DEPLOYMENT) or "local"
        )
        cache_root = env.get("XDG_CACHE_HOME") or "~/.cache"
        java_home = env.get("JAVA_HOME")
        project = _project_around(folder)
        root = project.root if project else Path()
        master = read_value(env, "LAKEHOUSE_SPARK_MASTER", _MASTER) or cls.spark_master
        remote = read_value(env, "SPARK_REMOTE", CONNECT)
        cluster = ClusterSettings.from_env(env)
        memory = read_value(env, "LAKEHOUSE_SPARK_MEMORY", MEMORY)
        if remote:
            _require_one_spark(master)
            cluster.require_settable_by_client({"LAKEHOUSE_SPARK_MEMORY": memory})
        elif master.startswith(STANDALONE):
            _require_executors(master, cluster)
        site = read_value(env, "LAKEHOUSE_DOCS", _SITE)
        definitions = read_value(env, "LAKEHOUSE_DEFINITIONS", _DEFINITIONS)
        return cls(
            home=_folder(
                "LAKEHOUSE_HOME",
                env.get("LAKEHOUSE_HOME") or str(root / ".lakehouse"),
                _NOT_IN_A_HOME,
            ),
            deployment=deployment,
            bucket=_bucket(env.get("LAKEHOUSE_BUCKET"), deployment),
            region=env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or None,
            endpoint_url=env.get("AWS_ENDPOINT_URL") or None,
            spark_remote=remote,
            cluster=cluster,
            spark_master=master,
            spark_memory=memory,
            iceberg=read_value(env, "LAKEHOUSE_ICEBERG", VERSION) or cls.iceberg,
            jobs=_table_jobs(env.get("LAKEHOUSE_JOBS"), deployment),
            java_home=Path(java_home) if java_home else None,
            search_path=env.get("PATH", ""),
            cache_dir=_folder(
                "LAKEHOUSE_CACHE",
                env.get("LAKEHOUSE_CACHE") or f"{cache_root}/lakehouse",
                _NOT_IN_A_CACHE,
            ),
            masking_key=env.get("LAKEHOUSE_MASKING_KEY") or None,
            alert_urls=_alert_urls(env.get("LAKEHOUSE_ALERT_URLS")),
            alert_routes=read_path(env, "LAKEHOUSE_ALERT_ROUTES"),
            heartbeat_url=_address(env, "LAKEHOUSE_HEARTBEAT_URL"),
            openlineage_url=_address(env, "LAKEHOUSE_OPENLINEAGE_URL"),
            openlineage_key=env.get("LAKEHOUSE_OPENLINEAGE_KEY") or None,
            # On one line, regardless of line breaks in the variable.
            name=" ".join((env.get("LAKEHOUSE_NAME") or "").split()),
            ui_url=_address(env, "LAKEHOUSE_UI_URL"),
            docs=absolute_place(site) if site else None,
            definitions=definitions or (project.definitions if project else SAMPLES),
            project_root=project.root if project else None,
        )

    def at(self, place: str) -> "Settings":
        """Return settings for another home, or a bucket `s3://name`; raises SettingsError."""
        if "://" not in place:
            home = _folder("The home", place, _NOT_IN_A_HOME)
            return replace(self, home=home, deployment="local", bucket=None)
        bucket = re.fullmatch(r"s3://([^/]+)/?", place)
        if bucket is None:
            raise SettingsError(
                f"{place!r} is no place of a lakehouse; expected a folder, or s3:// and the name"
                " of a bucket.",
            )
        return replace(self, deployment="aws", bucket=bucket[1])

    @property
    def title(self) -> str:
        """The name of this lakehouse for messages, or host and home, and its deployment."""
        return f"{self.name or f'{platform.node()}:{self.home}'} ({self.deployment})"

    @property
    def is_on_cluster(self) -> bool:
        """Return whether Spark started by this process has its executors on a cluster."""
        return not self.spark_remote and not self.spark_master.startswith("local")

    @property
    def warehouse(self) -> str:
        """The URI of the folder of all tables."""
        if self.deployment == "aws":
            return f"s3://{self.bucket}/warehouse"
        # Hadoop does not decode URIs: %20 would be part of a folder's name.
        return f"file://{self.home / 'warehouse'}"

    def make_home(self) -> None:
        """Create the home, private to the user; raises SettingsError."""
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            denied = "" if os.access(self.home, os.W_OK | os.X_OK) else "Permission denied"
        except OSError as error:
            denied = error.strerror or str(error)
        if denied:
            raise SettingsError(
                f"LAKEHOUSE_HOME is {str(self.home)!r} ({denied}); expected a folder that this"
                " user can write, or a place where one can be made.",
                next_step=(
                    "Set it to another folder, or unset it for '.lakehouse' in the working"
                    " directory."
                ),
            )

    @property
    def openlineage_file(self) -> Path:
        """The file of OpenLineage events."""
        return self.home / "openlineage.jsonl"

    @property
    def lock_dir(self) -> Path:
        """The folder of the file locks, one per table."""
        return self.home / "locks"

    @property
    def dagster_home(self) -> Path:
        """The folder of Dagster's instance: runs, checks, ticks."""
        return self.home / "dagster"


def _folder(name: str, value: str, excluded: str) -> Path:
    # Stored in metadata: a path with `..` would depend on a folder that may be removed.
    path = Path(os.path.normpath(Path(value).expanduser().absolute()))
    forbidden = [
        character
        for character in str(path)
        if character in excluded or not character.isprintable()
    ]
    if forbidden:
        raise SettingsError(
            f"{name} is {str(path)!r}, with {', '.join(map(repr, dict.fromkeys(forbidden)))} in it;"
            f" expected a path without control characters and without {' '.join(excluded)}.",
            next_step=(
                "They have a special meaning in file addresses. Set it to another folder."
            ),
        )
    return path


def _project_around(folder: Path | None) -> ProjectFile | None:
    """Return the project around a folder; default: the working directory."""
    try:
        folder = folder or Path.cwd()
    except FileNotFoundError:
        # The home may be set to an existing folder.
        return None
    return find_project_file(folder)


def _address(env: Mapping[str, str], name: str) -> str | None:
    value = read_value(env, name, SECRET_ADDRESS)
    return value.rstrip("/") if value else None


def _alert_urls(text: str | None) -> tuple[str, ...]:
    urls = tuple((text or "").split())
    for number, url in enumerate(urls, start=1):
        if "://" not in url and not url.startswith("arn:"):
            raise SettingsError(
                f"LAKEHOUSE_ALERT_URLS: entry {number} of {len(urls)} is neither a URL nor an"
                " ARN; expected such as mailto://…, slack://…, json://127.0.0.1:8080 or"
                " arn:aws:sns:…, with spaces between them.",
                next_step="Correct it; docs/monitoring.md has examples.",
            )
    return urls


def _bucket(name: str | None, deployment: Deployment) -> str | None:
    if deployment == "aws" and not name:
        raise SettingsError(
            "LAKEHOUSE_BUCKET is not set, and LAKEHOUSE_DEPLOYMENT is 'aws'; expected the name of"
            " a bucket.",
            next_step=(
                "Set LAKEHOUSE_BUCKET, or unset LAKEHOUSE_DEPLOYMENT to use only this machine."
            ),
        )
    return name or None


def _table_jobs(text: str | None, deployment: Deployment) -> tuple[TableJob, ...]:
    jobs = []
    for entry in (text or "").split():
        parts = _JOB.fullmatch(entry)
        if parts is None:
            raise SettingsError(
                f"LAKEHOUSE_JOBS has {entry!r}; expected tables and their job, such as"
                " gold.*=glue:lakehouse, with spaces between several.",
                next_step="Correct it, or unset it to compute all tables here.",
            )
        jobs.append(TableJob(parts[1], parts[2]))
    if jobs and deployment != "aws":
        raise SettingsError(
            f"LAKEHOUSE_JOBS is set, and LAKEHOUSE_DEPLOYMENT is {deployment!r}; expected 'aws',"
            " since a job of AWS reaches no tables on this machine.",
            next_step="Unset it, or set LAKEHOUSE_DEPLOYMENT to aws.",
        )
    return tuple(jobs)


def _require_executors(master: str, cluster: ClusterSettings) -> None:
    if cluster.executors is None:
        raise SettingsError(
            f"LAKEHOUSE_SPARK_MASTER is {master}, and LAKEHOUSE_EXECUTORS is not set; expected the"
            " largest number of executors, since a standalone cluster gives an application all of"
            " its cores.",
            next_step=(
                "Set it: LAKEHOUSE_EXECUTORS=4 and LAKEHOUSE_EXECUTOR_CORES=2 use up to 8 cores."
            ),
        )


def _require_one_spark(master: str) -> None:
    if not master.startswith("local"):
        raise SettingsError(
            f"SPARK_REMOTE and LAKEHOUSE_SPARK_MASTER={master} are both set, and name two Sparks;"
            " expected one of them.",
            next_step="Unset one of them.",
        )
