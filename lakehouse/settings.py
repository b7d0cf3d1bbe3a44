"""Every setting of the lakehouse, typed and checked; the only reader of the environment."""

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, cast, get_args

from lakehouse.cluster_settings import ClusterSettings
from lakehouse.errors import SettingsError
from lakehouse.project_file import ProjectFile, find_project_file, is_module_name
from lakehouse.setting_forms import MEMORY, VERSION, is_connect_address, value_of_form

Deployment = Literal["local", "aws"]
JobService = Literal["glue", "emr", "emr-serverless"]
_MASTER = (
    r"local(\[(\*|[1-9]\d*)(, *[1-9]\d*)?\])?|local-cluster\[ *\d+ *, *\d+ *, *\d+ *\]"
    r"|spark://[^,/:]+:\d+(,[^,/:]+:\d+)*|k8s://.+|yarn",
    "a master of Spark, such as local[*], local[2], spark://host:7077, k8s://… or yarn",
)
_JOB = re.compile(r"([^=\s]+)=(glue|emr|emr-serverless):(\S+)")

SAMPLES = "lakehouse.definitions"
"""What exists outside of a project: the sample pipelines."""
_NOT_IN_A_HOME = "#?%,"
"""What ends the path of a URI, or stands for another character there: SQLite, Hadoop and
Iceberg differ in which.

A comma divides the folders that Spark keeps its temporary files in.
"""
_NOT_IN_A_CACHE = "#?%,:"
"""A colon also divides the jars that Java is given."""


@dataclass(frozen=True)
class TableJob:
    """The job of AWS in which some tables are computed."""

    tables: str
    """A pattern of their names, such as `gold.*`."""
    service: JobService
    name: str
    """Name of the job of Glue; of EMR, the JSON file of what a run is started with."""


@dataclass(frozen=True)
class Settings:
    """What a process was told by its environment.

    `home` is absolute. Everything that the lakehouse keeps on this machine is below it, except
    `cache_dir` (jars, shared by all clones of a user).
    """

    home: Path
    deployment: Deployment = "local"
    bucket: str | None = None
    """Bucket of the `aws` deployment: `warehouse/`, `inbox/<feed>/`, `archive/<feed>/`,
    `rejected/<feed>/` in it.
    """
    region: str | None = None
    endpoint_url: str | None = None
    """Where an emulator answers for S3, Glue and SNS."""
    spark_remote: str | None = None
    """A Spark Connect address (`sc://host:port`)."""
    spark_master: str = "local[*]"
    spark_memory: str | None = None
    """Memory of the driver, where it was said."""
    default_spark_memory: ClassVar[str] = "2g"
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    """What executors and driver are, where Spark is more than one process."""
    iceberg: str = "1.12.0"
    """The version of Iceberg whose jars Spark is given."""
    jobs: tuple[TableJob, ...] = ()
    """The tables that jobs of AWS compute; the first that fits counts."""
    java_home: Path | None = None
    search_path: str = ""
    """The `PATH` that a `java` is looked for on."""
    cache_dir: Path = Path("~/.cache/lakehouse")
    masking_key: str | None = None
    """Key of the hash that personal data is shown as; made once and kept in the home where it
    is not set.
    """
    alert_urls: tuple[str, ...] = field(default=(), repr=False)
    """Where every alert goes: URLs as apprise has them, and ARNs of SNS topics. They may hold
    secrets.
    """
    alert_routes: Path | None = None
    """The TOML file that says what else goes where; `alerts.toml` in the home, where that is
    there.
    """
    heartbeat_url: str | None = field(default=None, repr=False)
    """What is called after each look for something broken."""
    openlineage_path: Path | None = None
    """The file of events of OpenLineage; see `openlineage_file`."""
    openlineage_url: str | None = field(default=None, repr=False)
    """Where events of OpenLineage are sent too."""
    openlineage_key: str | None = field(default=None, repr=False)
    """What is sent along as `Authorization: Bearer …`."""
    name: str = ""
    """What people call this lakehouse, of several; see `title`."""
    ui_url: str | None = None
    """Where people open Dagster's UI; links in alerts begin with it."""
    docs: str | None = None
    """Where the site of the tables is made after runs: a folder, or `s3://bucket/prefix`; not at
    all where it is not set.
    """
    definitions: str = SAMPLES
    """The module that says what exists: that of the project that the working directory lies in."""
    project_root: Path | None = None
    """The folder of that project; None outside of one."""

    @classmethod
    def from_env(
        cls, env: Mapping[str, str] | None = None, *, folder: Path | None = None
    ) -> "Settings":
        """Read and check the environment (`os.environ` unless another one is given).

        :param folder: lies in the project; the working directory unless another one is given.
        :raises SettingsError: names the variable, what it held and what was expected.
        """
        env = os.environ if env is None else env
        deployment = _deployment(env.get("LAKEHOUSE_DEPLOYMENT"))
        cache_root = env.get("XDG_CACHE_HOME") or "~/.cache"
        java_home = env.get("JAVA_HOME")
        project = _project_around(folder)
        root = project.root if project else Path()
        master = value_of_form(env, "LAKEHOUSE_SPARK_MASTER", _MASTER, cls.spark_master)
        remote = _spark_remote(env.get("SPARK_REMOTE"), master)
        cluster = ClusterSettings.from_env(env)
        memory = value_of_form(env, "LAKEHOUSE_SPARK_MEMORY", MEMORY, "")
        if remote:
            cluster.require_settable_by_client({"LAKEHOUSE_SPARK_MEMORY": memory or None})
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
            spark_memory=memory or None,
            iceberg=value_of_form(env, "LAKEHOUSE_ICEBERG", VERSION, cls.iceberg),
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
            alert_routes=_path(env.get("LAKEHOUSE_ALERT_ROUTES")),
            heartbeat_url=_web_address(env, "LAKEHOUSE_HEARTBEAT_URL"),
            openlineage_path=_path(env.get("LAKEHOUSE_OPENLINEAGE_FILE")),
            openlineage_url=_web_address(env, "LAKEHOUSE_OPENLINEAGE_URL"),
            openlineage_key=env.get("LAKEHOUSE_OPENLINEAGE_KEY") or None,
            # One line, whatever a shell put there.
            name=" ".join((env.get("LAKEHOUSE_NAME") or "").split()),
            ui_url=_web_address(env, "LAKEHOUSE_UI_URL"),
            docs=_site_place(env.get("LAKEHOUSE_DOCS")),
            definitions=_definitions(env.get("LAKEHOUSE_DEFINITIONS"), project),
            project_root=project.root if project else None,
        )

    def at(self, place: str) -> "Settings":
        """Return these settings with another deployment: that of a home's folder, or of a bucket,
        `s3://name`, with region and credentials as here.

        :raises SettingsError: when the place is neither.
        """
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
        """Which lakehouse this is, for people who have several: its name, or host and home, and
        its deployment.
        """
        return f"{self.name or f'{platform.node()}:{self.home}'} ({self.deployment})"

    @property
    def is_on_cluster(self) -> bool:
        """Whether what this process starts of Spark has its executors on a cluster."""
        return not self.spark_remote and not self.spark_master.startswith("local")

    @property
    def warehouse(self) -> str:
        """URI below which the tables' files are."""
        if self.deployment == "aws":
            return f"s3://{self.bucket}/warehouse"
        # Hadoop takes a URI as it stands: %20 would be a folder of that name.
        return f"file://{self.home / 'warehouse'}"

    def make_home(self) -> None:
        """Make the home's folder, closed to other users, unless it is there.

        :raises SettingsError: when it cannot be made, or this user cannot write in it.
        """
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
        """File of the events of OpenLineage: what is set, or one in the home."""
        return self.openlineage_path or self.home / "openlineage.jsonl"

    @property
    def lock_dir(self) -> Path:
        """Folder of the file locks, one for each table."""
        return self.home / "locks"

    @property
    def dagster_home(self) -> Path:
        """Folder of Dagster's instance: runs, checks, ticks."""
        return self.home / "dagster"


def _folder(name: str, value: str, refused: str) -> Path:
    # Metadata keeps it: with `..` in it, it would need the folder that it was told from.
    path = Path(os.path.normpath(Path(value).expanduser().absolute()))
    forbidden = [
        character
        for character in str(path)
        if character in refused or not character.isprintable()
    ]
    if forbidden:
        raise SettingsError(
            f"{name} is {str(path)!r}, with {', '.join(map(repr, dict.fromkeys(forbidden)))} in it;"
            f" expected a path without control characters and without {' '.join(refused)}.",
            next_step=(
                "They have a meaning in the addresses of files, so that files would lie"
                " elsewhere. Set it to another folder."
            ),
        )
    return path


def _project_around(folder: Path | None) -> ProjectFile | None:
    """Return the project that a folder lies in, or else the working directory."""
    try:
        folder = folder or Path.cwd()
    except FileNotFoundError:
        # A home may be given that is elsewhere.
        return None
    return find_project_file(folder)


def _definitions(value: str | None, project: ProjectFile | None) -> str:
    if value and not is_module_name(value):
        raise SettingsError(
            f"LAKEHOUSE_DEFINITIONS is {value!r}; expected the name of a module, such as"
            " shop.definitions.",
            next_step="Correct it, or unset it for that of the project.",
        )
    return value or (project.definitions if project else SAMPLES)


def _path(value: str | None) -> Path | None:
    return Path(value).expanduser().absolute() if value else None


def _site_place(value: str | None) -> str | None:
    if value and "://" not in value:
        return str(_path(value))
    if value and not re.fullmatch(r"s3://[^/]+(/.*)?", value):
        raise SettingsError(
            f"LAKEHOUSE_DOCS is {value!r}; expected a folder, or s3://bucket/prefix.",
            next_step="Correct it, or unset it for no site after runs.",
        )
    return value or None


def _web_address(env: Mapping[str, str], name: str) -> str | None:
    value = env.get(name)
    if value and not value.startswith(("http://", "https://")):
        # What was found may be a secret with a typing error.
        raise SettingsError(
            f"{name} does not begin with http:// or https://; expected the address of a web"
            " page.",
            next_step="Write it in full, or unset it.",
        )
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


def _deployment(value: str | None) -> Deployment:
    deployment = value or "local"
    if deployment not in get_args(Deployment):
        raise SettingsError(
            f"LAKEHOUSE_DEPLOYMENT is {deployment!r}; expected one of"
            f" {', '.join(get_args(Deployment))}.",
            next_step="Set it to one of these, or unset it for 'local'.",
        )
    return cast(Deployment, deployment)


def _bucket(name: str | None, deployment: Deployment) -> str | None:
    if deployment == "aws" and not name:
        raise SettingsError(
            "LAKEHOUSE_BUCKET is not set, and LAKEHOUSE_DEPLOYMENT is 'aws'; expected the name of"
            " a bucket.",
            next_step=(
                "Set LAKEHOUSE_BUCKET, or unset LAKEHOUSE_DEPLOYMENT to work on this machine alone."
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
        jobs.append(TableJob(parts[1], cast(JobService, parts[2]), parts[3]))
    if jobs and deployment != "aws":
        raise SettingsError(
            f"LAKEHOUSE_JOBS is set, and LAKEHOUSE_DEPLOYMENT is {deployment!r}; expected 'aws',"
            " since a job of AWS reaches no tables on this machine.",
            next_step="Unset it, or set LAKEHOUSE_DEPLOYMENT to aws.",
        )
    return tuple(jobs)


def _spark_remote(address: str | None, master: str) -> str | None:
    if address and not master.startswith("local"):
        raise SettingsError(
            f"SPARK_REMOTE and LAKEHOUSE_SPARK_MASTER={master} are both set, and name two Sparks;"
            " expected one of them.",
            next_step="Unset SPARK_REMOTE to use that master, or else LAKEHOUSE_SPARK_MASTER.",
        )
    if address and not is_connect_address(address):
        # With a typing error in it, its token stands anywhere.
        found = "what is not shown here" if re.search("[;=@]", address) else repr(address)
        raise SettingsError(
            "SPARK_REMOTE is not an address of Spark Connect; expected sc://HOST:PORT, and"
            f" sc://HOST:PORT/;token=TOKEN where it asks for one, found {found}.",
            next_step=(
                "Set it to the address of a Spark Connect server, such as sc://127.0.0.1:15002,"
                " with %3D for a `=` in a token; or unset it."
            ),
        )
    return address or None
