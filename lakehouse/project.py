"""A project: the tables and feeds of a package of assets, and the Dagster definitions that
automate, monitor, maintain and erase them.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

import dagster as dg

from lakehouse.alerts.alerts_sensor import alerts_definitions
from lakehouse.errors import DeclarationError, LakehouseError, SettingsError
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.iceberg.erasure.suppression_list import RowTimestamp, SuppressionList
from lakehouse.ingestion.sensors.shared_sensor import feed_definitions
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.asset_specs import incremental_readers
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.deployment import engine_resource
from lakehouse.orchestration.discovery import (
    declared_assets,
    declared_by_name,
    declared_tables,
    imported,
    modules_of,
    table_sources,
    values_of,
)
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs.runs_for_stale_tables import Downstream
from lakehouse.orchestration.table_jobs.job_choice import TableJobs
from lakehouse.privacy.detect_late_requests import detect_late_requests
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure_job import Eraser
from lakehouse.privacy.holders import Subject, find_subjects, row_moments, subject_names
from lakehouse.privacy.suppressed_people import read_audited
from lakehouse.quality.check_jobs import daily_check_definitions
from lakehouse.quality.metrics.metrics_sensor import metrics_definitions
from lakehouse.quality.source_rows_check import default_checks
from lakehouse.settings import Settings
from lakehouse.site.read_site import SiteSource
from lakehouse.site.site_job import site_definitions
from lakehouse.tables.feed import Feed
from lakehouse.tables.table import IcebergTable
from lakehouse.upkeep.old_runs import old_runs_definitions
from lakehouse.upkeep.upkeep_run import Upkept
from lakehouse.upkeep.upkeep_sensor import upkeep_definitions

if TYPE_CHECKING:
    from lakehouse.orchestration.dagster_internals import AssetGraph

OWN_ASSETS = ("lakehouse.assets.audit", "lakehouse.assets.monitoring")
"""Tables of the lakehouse itself, which exist in each project."""


@dataclass(frozen=True)
class Monitoring:
    """The names of the tables that store metrics over time."""

    metrics: str = "monitoring.data_quality_metrics"
    health: str = "monitoring.table_health"
    upkeep: str = "monitoring.upkeep_runs"


MONITORING = Monitoring()


@dataclass(frozen=True)
class Project:
    """The declarations in a package of assets, such as `Project("shop.assets")`. Files in the
    package add tables.

    :raises DeclarationError: on first use, if a file cannot be imported, or two declarations
        conflict.
    """

    package: str
    """The package of the assets, such as `shop.assets`; all modules below it are imported."""
    others: Sequence[ModuleType] = ()
    """Additional modules with assets outside of the package."""

    @cached_property
    def modules(self) -> Sequence[ModuleType]:
        """The modules of the assets."""
        found: dict[ModuleType, None] = {}
        for package in (self.package, *OWN_ASSETS):
            found |= dict.fromkeys(modules_of(package))
        return [*found, *self.others]

    @cached_property
    def tables(self) -> Mapping[str, IcebergTable]:
        """The declared tables and their quarantines by name."""
        return declared_tables(self.modules)

    @cached_property
    def feeds(self) -> Mapping[str, Feed]:
        """The declared feeds by name."""
        return declared_by_name(self.modules, Feed)

    @cached_property
    def sources(self) -> Mapping[str, Collection[str]]:
        """The source tables of each table."""
        return table_sources(self.modules)

    @cached_property
    def defs(self) -> dg.Definitions:
        """All definitions with settings from the environment; Dagster loads these."""
        return self.definitions()

    @cached_property
    def graph(self) -> "AssetGraph":
        """The asset graph."""
        return asset_graph(self.defs)

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """The kinds of data subjects in the tables."""
        return find_subjects(self.tables, self.sources)

    def definitions(
        self, read_settings: Callable[[], Settings] = Settings.from_env
    ) -> dg.Definitions:
        """Return all definitions for a deployment. Settings are read when a run starts, not
        when definitions are loaded.
        """
        computed = self._computed(read_settings)
        graph = asset_graph(computed)
        feeds = tuple(self.feeds.values())
        detectors = {"erasure": detect_late_requests}
        return dg.Definitions.merge(
            computed,
            feed_definitions(feeds, self.tables, read_settings, graph),
            self._recorded(graph, read_settings),
            daily_check_definitions(read_settings),
            upkeep_definitions(self.upkept(), read_settings),
            Eraser(self.erasable, read_settings).definitions(),
            site_definitions(self.site_source(), read_settings),
            old_runs_definitions(),
            alerts_definitions(self.tables, feeds, read_settings, detectors),
        )

    def upkept(self) -> Upkept:
        """Return the input of upkeep: the tables, and their incremental readers."""
        return Upkept(
            self.tables,
            self.tables[MONITORING.upkeep],
            self.tables[MONITORING.health],
            incremental_readers(declared_assets(self.modules)),
        )

    def site_source(self) -> SiteSource:
        """Return the input of the documentation site."""
        return SiteSource(self.tables, self.feeds, lambda: self.graph)

    def suppression_list(self, settings: Settings) -> SuppressionList:
        """Return the suppression list of a deployment."""
        names, moments = self._people_known_by
        return SuppressionList(lambda: read_audited(settings), self.tables, names, moments)

    def erasable(self, settings: Settings, engine: Engine) -> Erasable:
        """Return what an erasure covers in a deployment."""
        return Erasable(
            settings,
            engine,
            self.tables,
            self.feeds,
            self.subjects,
            self.sources,
            incremental_readers(declared_assets(self.modules)),
            self.tables["audit.gdpr_actions"],
            self.definitions,
        )

    def _computed(self, read_settings: Callable[[], Settings]) -> dg.Definitions:
        """Return the assets with their checks and resources."""
        engine = engine_resource(read_settings)
        assets = declared_assets(self.modules)
        suppression = dg.ResourceDefinition(
            lambda _: self.suppression_list(read_settings()),
            description="The erased data subjects.",
        )
        jobs = dg.ResourceDefinition(
            lambda _: TableJobs.of_run(read_settings()),
            description="The tables that AWS jobs compute.",
        )
        return dg.Definitions(
            assets=[*assets, *default_checks(assets, self.tables)],
            resources={
                "settings": dg.ResourceDefinition(
                    lambda _: read_settings(), description="Settings from the environment."
                ),
                "engine": engine,
                "io_manager": IcebergIOManager(
                    engine=engine, declared=self.tables, suppression=suppression, jobs=jobs
                ),
            },
            executor=dg.multi_or_in_process_executor.configured(
                lambda _: execution(read_settings()),
                config_schema={},
                name="one_process_for_each_session",
            ),
        )

    def _recorded(
        self, graph: "AssetGraph", read_settings: Callable[[], Settings]
    ) -> dg.Definitions:
        """Return the definitions that record metrics of each run."""
        zones = {
            table: feed.time_zone
            for feed in self.feeds.values()
            for table in Downstream(graph, feed.table).tables
        }
        table = self.tables[MONITORING.metrics]
        checked = sorted(map(table_name, graph.executable_asset_keys))
        return metrics_definitions(table, zones, read_settings, checked)

    @cached_property
    def _people_known_by(
        self,
    ) -> tuple[Mapping[str, Collection[str]], Mapping[str, RowTimestamp]]:
        return (
            subject_names(self.subjects),
            row_moments(self.tables, self.feeds.values(), self.sources),
        )


def execution(settings: Settings) -> dict[str, dict[str, object]]:
    """Return the executor configuration: in-process, or multiprocess with a shared Spark
    server. AWS jobs of tables run one after the other, since a job's concurrent run limit fails
    additional runs.
    """
    is_shared = settings.spark_remote and not settings.jobs
    return {"multiprocess": {}} if is_shared else {"in_process": {}}


def load_project(settings: Settings) -> Project:
    """Import the module that defines the project.

    The folder of the project is added to `sys.path`, so it does not need to be installed.

    :raises SettingsError: the module does not exist or does not contain exactly one project.
    :raises DeclarationError: it cannot be imported; states the file, the line and the reason.
    """
    name = settings.definitions
    root = str(settings.project_root or "")
    if root and root not in sys.path:
        sys.path.insert(0, root)
    projects = values_of([_import_definitions(name)], Project)
    if len(projects) != 1:
        raise SettingsError(
            f"{name} has {len(projects) or 'no'} values of the type Project; expected one.",
            next_step='Define PROJECT = Project("…"), with the package of the assets.',
        )
    return projects[0]


def _import_definitions(name: str) -> ModuleType:
    try:
        return imported(name, name)
    except DeclarationError as error:
        cause = error.__cause__
        if isinstance(cause, LakehouseError):
            raise cause from None
        if not isinstance(cause, ModuleNotFoundError) or cause.name is None:
            raise
        if not f"{name}.".startswith(f"{cause.name}."):
            raise
        raise SettingsError(
            f"There is no module {name}, which LAKEHOUSE_DEFINITIONS or [tool.lakehouse] in"
            " pyproject.toml names as that of the definitions; expected one that can be imported.",
            next_step="Correct the name, or install the project.",
        ) from cause
