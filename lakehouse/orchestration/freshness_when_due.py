"""Dagster's daemon of freshness, which evaluates where the answer may be another one.

By itself it reads the last run of every table twice a minute, whether anything happened or not. A
table becomes fresh by an event alone, and old by time alone, at a moment that its last run tells.
"""

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetNode
from dagster._core.definitions.freshness import (
    CronFreshnessPolicy,
    FreshnessPolicy,
    TimeWindowFreshnessPolicy,
)
from dagster._core.loader import LoadingContext
from dagster._core.storage.event_log.base import AssetRecord
from dagster._daemon.daemon import DaemonIterator
from dagster._daemon.freshness import FreshnessDaemon
from dagster._time import get_current_timestamp
from dagster._utils.schedules import get_next_cron_tick

from lakehouse.orchestration.dagster_internals import newest_event

_LONGEST_SECONDS = 600
"""After which all is evaluated anyway: in PostgreSQL, an event may be committed after one of a
higher number was seen.
"""


class FreshnessWhenDue(FreshnessDaemon):
    """Evaluates the freshness of all tables where something happened, other code was loaded, or
    one of them grew too old since it did.
    """

    def __init__(self) -> None:
        """Evaluate at the first look."""
        super().__init__()
        self._evaluated: tuple[object, int | None] | None = None
        """The graph of the code, and the newest event."""
        self._changes_at = get_current_timestamp() + _LONGEST_SECONDS
        """When time alone makes a table older than it may be, as seconds since 1970; no later
        than the next look that is taken anyway.
        """

    def run_iteration(self, workspace_process_context: Any) -> DaemonIterator:
        """Evaluate, where that is needed."""
        with workspace_process_context.create_request_context() as request:
            graph = request.asset_graph
        now_known = graph, newest_event(workspace_process_context.instance)
        is_known = now_known == self._evaluated and now_known[1] is not None
        if is_known and get_current_timestamp() < self._changes_at:
            yield None
            return
        # Where the evaluation fails, the next look evaluates again.
        self._evaluated, self._changes_at = None, get_current_timestamp() + _LONGEST_SECONDS
        yield from super().run_iteration(workspace_process_context)
        self._evaluated = now_known

    async def _evaluate_asset(self, context: LoadingContext, node: BaseAssetNode) -> bool:
        # What becomes due while it is evaluated is evaluated again.
        now = get_current_timestamp()
        is_changed = await super()._evaluate_asset(context, node)
        policy = node.freshness_policy_or_from_metadata
        if policy is not None:
            # It was read for the evaluation, and is kept by the context.
            record = await AssetRecord.gen(context, node.key)
            last_run = record.asset_entry.last_materialization if record else None
            if last_run:
                due = changes_at(policy, last_run.timestamp, now)
                self._changes_at = min(self._changes_at, due)
        return is_changed


def changes_at(policy: FreshnessPolicy, ran_at: float, now: float) -> float:
    """Return when time alone may change the freshness of a table next, as seconds since 1970; never
    of one that is too old already, and at once by a policy that is not known here.

    :param ran_at: when its last run was, in the same way.
    """
    if isinstance(policy, TimeWindowFreshnessPolicy):
        ends = [ran_at + seconds for seconds in _window_seconds(policy)]
        return min((end for end in ends if end > now), default=math.inf)
    if isinstance(policy, CronFreshnessPolicy):
        moment = datetime.fromtimestamp(now).astimezone()
        return get_next_cron_tick(policy.deadline_cron, moment, policy.timezone).timestamp()
    return now


def _window_seconds(policy: TimeWindowFreshnessPolicy) -> Iterator[float]:
    for window in (policy.warn_window, policy.fail_window):
        if window:
            yield window.to_timedelta().total_seconds()
