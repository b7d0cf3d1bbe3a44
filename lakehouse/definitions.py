"""What exists, and what it runs on; everything else is found from here.

A table is added by a file in `lakehouse/assets/`, and needs no line here.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cache

import dagster as dg

from lakehouse.iceberg.erasure.gone_people import GonePeople
from lakehouse.iceberg.erasure.without_gone import Moment
from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.ingestion.feed_sensors import FeedAutomation
from lakehouse.maintenance.health_check import health_checks
from lakehouse.maintenance.old_runs import old_runs_definitions
from lakehouse.maintenance.upkeep_job import Upkeeper
from lakehouse.maintenance.upkeep_round import Upkept
from lakehouse.monitoring.alerts_sensor import alerts_definitions
from lakehouse.monitoring.asset_pages import with_pages
from lakehouse.orchestration.asset_inputs import incremental_readers
from lakehouse.orchestration.asset_keys import table_name
from lakehouse.orchestration.dagster_internals import asset_graph
from lakehouse.orchestration.discovery import (
    declared_assets,
    declared_by_name,
    declared_tables,
    modules_of,
    table_sources,
)
from lakehouse.orchestration.io_manager import IcebergIOManager
from lakehouse.orchestration.runs_for_stale_tables import Downstream
from lakehouse.privacy.detect_late_requests import detect_late_requests
from lakehouse.privacy.erasable import Erasable
from lakehouse.privacy.erasure_job import Eraser
from lakehouse.privacy.gone import read_gone
from lakehouse.privacy.holders import Subject, find_subjects
from lakehouse.privacy.rows_of_people import row_moments, subject_names
from lakehouse.quality.daily_check import daily_check_definitions
from lakehouse.quality.metrics.metrics_sensor import RunMetrics
from lakehouse.quality.source_rows_check import default_checks
from lakehouse.runtime.deployment import engine_resource
from lakehouse.settings import Settings
from lakehouse.site.read_site import SiteSource
from lakehouse.site.site_job import SiteMaker
from lakehouse.site.table_trends import Monitoring
from lakehouse.tables.feed import Feed

MODULES = modules_of("lakehouse.assets")
TABLES = declared_tables(MODULES)
FEEDS = declared_by_name(MODULES, Feed)


def definitions(read_settings: Callable[[], Settings] = Settings.from_env) -> dg.Definitions:
    """Return all definitions, on a deployment; settings are read when a run starts, not when
    this is loaded.
    """
    engine = engine_resource(read_settings)
    assets = declared_assets(MODULES)
    shown = with_pages(
        assets,
        TABLES,
        FEEDS.values(),
        health=TABLES["monitoring.table_health"],
        upkeep=TABLES["monitoring.upkeep_runs"],
    )
    computed = dg.Definitions(
        assets=[*shown, *default_checks(assets, TABLES)],
        asset_checks=[health_checks(TABLES)],
        resources={
            "settings": dg.ResourceDefinition(
                lambda _: read_settings(), description="What the environment says."
            ),
            "engine": engine,
            "io_manager": IcebergIOManager(
                engine=engine, declared=TABLES, gone=gone_resource(read_settings)
            ),
        },
        executor=dg.multi_or_in_process_executor.configured(
            lambda _: execution(read_settings()),
            config_schema={},
            name="one_process_for_each_session",
        ),
    )
    graph = asset_graph(computed)
    fed = [
        FeedAutomation(feed, TABLES, read_settings).definitions(graph)
        for feed in FEEDS.values()
    ]
    watched = alerts_definitions(
        TABLES, tuple(FEEDS.values()), read_settings, {"erasure": detect_late_requests}
    )
    zones = {
        table: feed.time_zone
        for feed in FEEDS.values()
        for table in Downstream(graph, feed.table).tables
    }
    metrics = RunMetrics(TABLES["monitoring.data_quality_metrics"], zones, read_settings)
    recorded = metrics.definitions(sorted(map(table_name, graph.executable_asset_keys)))
    daily = daily_check_definitions(read_settings)
    upkeep = Upkeeper(upkept(), read_settings).definitions()
    erasing = Eraser(erasable, read_settings).definitions()
    site = SiteMaker(site_source(), read_settings).definitions()
    return dg.Definitions.merge(
        computed, *fed, recorded, daily, upkeep, erasing, site, old_runs_definitions(), watched
    )


def upkept() -> Upkept:
    """Return what upkeep looks at: the tables, and who reads on in them."""
    return Upkept(
        TABLES,
        TABLES["monitoring.upkeep_runs"],
        TABLES["monitoring.table_health"],
        incremental_readers(declared_assets(MODULES)),
    )


MONITORING = Monitoring(
    metrics="monitoring.data_quality_metrics",
    health="monitoring.table_health",
    upkeep="monitoring.upkeep_runs",
)
"""Where the past of the tables is kept."""


def site_source() -> SiteSource:
    """Return what the site tells of."""
    return SiteSource(TABLES, FEEDS, MONITORING, lambda: asset_graph(defs))


def gone_resource(read_settings: Callable[[], Settings]) -> dg.ResourceDefinition:
    """Return who is gone as a resource; settings are read when a run needs it."""
    return dg.ResourceDefinition(
        lambda _: gone_people(read_settings()), description="Who was erased, and stays gone."
    )


def gone_people(settings: Settings) -> GonePeople:
    """Return who is gone of the people that the tables hold."""
    names, moments = _known_by()
    return GonePeople(lambda: read_gone(settings), TABLES, names, moments)


@cache
def _known_by() -> tuple[Mapping[str, Collection[str]], Mapping[str, Moment]]:
    return (
        subject_names(subjects()),
        row_moments(TABLES, FEEDS.values(), table_sources(MODULES)),
    )


def subjects() -> tuple[Subject, ...]:
    """Return the kinds of people that the tables hold."""
    return find_subjects(TABLES, table_sources(MODULES))


def erasable(settings: Settings, engine: Engine) -> Erasable:
    """Return what there is to erase people from, on a deployment."""
    return Erasable(
        settings,
        engine,
        TABLES,
        FEEDS,
        subjects(),
        table_sources(MODULES),
        incremental_readers(declared_assets(MODULES)),
        TABLES["audit.gdpr_actions"],
        definitions,
    )


def execution(settings: Settings) -> dict[str, dict[str, object]]:
    """Return how a run's steps are executed: in its own process, or where a Spark server is
    shared in several.
    """
    return {"multiprocess": {}} if settings.spark_remote else {"in_process": {}}


defs = definitions()
