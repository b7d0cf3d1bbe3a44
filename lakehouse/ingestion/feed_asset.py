"""A feed's bronze table as a Dagster asset: land the waiting files, then archive them."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dagster as dg

from lakehouse.iceberg.values.write_context import Run
from lakehouse.ingestion.ad_hoc_files import AD_HOC_TAG, require_copies, select_store
from lakehouse.ingestion.collected_files import describe_rejected
from lakehouse.ingestion.land import Landing, land
from lakehouse.ingestion.staging.executor_reading import executor_reading
from lakehouse.ingestion.staging.staged_rows import open_staging
from lakehouse.orchestration.asset_keys import PATH_TAG
from lakehouse.orchestration.functions.function_code import default_code_version
from lakehouse.orchestration.metadata_keys import LandedFile, LandingMetadata, RejectedReason
from lakehouse.orchestration.table_asset import Written, table_asset
from lakehouse.orchestration.table_function import TableFunction, keep_function
from lakehouse.storage.stores import open_store
from lakehouse.tables.feed import Feed, uncompressed
from lakehouse.tables.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def feed_asset(
    feed: Feed,
    table: IcebergTable,
) -> "Callable[[Callable[[DataFrame], DataFrame]], dg.AssetsDefinition]":
    """Make an asset of a feed. The function receives the delivered rows and adds the `extra`
    columns.

    :param feed: the feed declaration.
    :param table: the bronze table; see `bronze_table`.
    """

    def decorate(compute: "Callable[[DataFrame], DataFrame]") -> dg.AssetsDefinition:
        def materialize(context: dg.AssetExecutionContext, run: Run) -> Written:
            settings = context.resources.settings
            io = context.resources.io_manager
            tags = context.run.tags
            folder = tags.get(AD_HOC_TAG)
            if folder is not None:
                require_copies(feed, folder, tags.get(PATH_TAG, ""))
            store = select_store(open_store(settings), feed, folder)
            landing = land(
                io.engine,
                feed,
                io.with_layer(table),
                store,
                settings.home,
                run,
                compute=compute,
                suppression=io.suppression,
                bucket=open_staging(settings),
                executors=executor_reading(settings, io.engine.session),
            )
            for warning in (
                *landing.warnings,
                *map(describe_rejected, landing.delivery.rejected),
            ):
                context.log.warning(warning)
            read = {file.stored.key: file.stored.version for file in landing.delivery.files}
            places = {
                "inbox": dg.MetadataValue.path(store.uri(feed.inbox)),
                "archive": dg.MetadataValue.path(store.uri(feed.archive)),
                "rejected_to": dg.MetadataValue.path(store.uri(feed.rejected)),
            }
            return Written(landing.outcome, landing_metadata(landing) | places, read)

        asset = table_asset(
            table,
            materialize,
            description=inspect.getdoc(compute),
            kinds=frozenset(uncompressed(name) for name in feed.formats),
            resources=frozenset({"settings"}),
            freshness_policy=_freshness(feed),
            code_version=default_code_version(compute),
        )
        return keep_function(asset, TableFunction(table, compute, feed=feed))

    return decorate


def _freshness(feed: Feed) -> dg.FreshnessPolicy | None:
    if feed.expected_within is None:
        return None
    return dg.FreshnessPolicy.time_window(fail_window=feed.expected_within)


def landing_metadata(landing: Landing) -> dict[str, Any]:
    delivery = landing.delivery
    return LandingMetadata(
        files=len(delivery.files),
        rejected_files=len(delivery.rejected),
        delivered_rows=delivery.rows,
        delivered_bytes=delivery.size_bytes,
        landed=tuple(
            LandedFile(file.source_file, file.rows, file.sha256) for file in delivery.files
        ),
        rejected=tuple(
            RejectedReason(file.source_file, str(file.why), file.key)
            for file in delivery.rejected
        ),
        waiting_files=delivery.waiting or None,
        archived=tuple(landing.archived),
        unsettled=tuple(delivery.unsettled),
        warnings=tuple(landing.warnings),
        suppressed_rows=delivery.suppressed_rows or None,
    ).to_metadata()
