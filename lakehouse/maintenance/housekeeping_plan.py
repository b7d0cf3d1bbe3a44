"""Which of a table's leftovers are due to go: stale branches, old snapshots, needless
manifests, orphans, lost metadata files and old statistics; pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehouse.iceberg.commit.branch import AUDIT_KEPT_FOR, begun_at, is_refused
from lakehouse.iceberg.metadata.measured_health import RefHealth, SnapshotPin, TableHealth
from lakehouse.iceberg.upkeep.step_result import StepName
from lakehouse.maintenance.compaction_plan import DailyBytes, next_day, size_text
from lakehouse.maintenance.past_upkeep import PastUpkeep
from lakehouse.maintenance.upkeep_plan import Condition, Estimate, Gain, PlannedStep, counted
from lakehouse.maintenance.upkeep_record import UpkeepRecord, live_rows
from lakehouse.tables.upkeep import UpkeepPolicy, in_days

EXPIRY_EVERY = timedelta(days=1)
"""Each snapshot of a table that is written all day would be expired by itself otherwise."""
LISTING_EVERY = timedelta(days=7)
"""Orphans cost space and no read, and to find them all files are listed."""
STATISTICS_EVERY = timedelta(days=7)
STATISTICS_BYTES = 16 * 1024 * 1024
"""A table with fewer bytes is sent whole to each task that joins it, whatever its columns hold:
Spark's own bound is 10 MB (`spark.sql.autoBroadcastJoinThreshold`).
"""
CHANGED_SHARE = 0.2
"""Share of the rows by which a table has to have changed for new statistics."""
NEEDLESS_MANIFESTS = 20
"""So many more than are needed are worth a rewrite: each is opened by each read."""
MANIFESTS_OF_COMPACTION = 10
"""Manifests that a compaction may add: one for each of its commits (`partial-progress`)."""


@dataclass(frozen=True)
class Look:
    """A table at one moment, and all that decides about its leftovers.

    `asked_by_name` says that a person asked for this table: no rhythm and no budget holds back
    then. `compacts` says that its compaction is due in the same round.
    """

    health: TableHealth
    policy: UpkeepPolicy
    past: PastUpkeep
    now: datetime
    reads_a_day: float
    asked_by_name: bool
    compacts: bool

    @property
    def stale_branches(self) -> list[RefHealth]:
        """Branches of refused writes that were kept for long enough, and those of dead
        writers.
        """
        return [
            ref
            for ref in self.health.refs
            if ref.is_branch and _is_stale(ref, self.policy, self.now)
        ]

    def last_look(self, step: StepName) -> UpkeepRecord | None:
        """Return the newest record of a step of the table that saw what there was to do."""
        return self.past.last_look(self.health.table, step)

    def is_unchanged_since(self, record: UpkeepRecord) -> bool:
        """Whether nothing has committed to the table since a round of upkeep."""
        return record.metadata_location == self.health.metadata_location

    def rhythm(self, step: StepName, every: timedelta) -> datetime | None:
        """Return when a step may next run, where it ran lately and nobody asked for it."""
        last = self.last_look(step)
        if last is None or self.asked_by_name or self.now >= last.ended_at + every:
            return None
        return last.ended_at + every


def planned_housekeeping(look: Look, budget: DailyBytes) -> Iterator[PlannedStep]:
    """Yield all steps but compaction, in the order in which they are safe."""
    yield _drop_branches(look)
    yield _expire_snapshots(look)
    yield _rewrite_manifests(look)
    yield _remove_orphans(look)
    yield _remove_lost_metadata(look)
    yield _compute_statistics(look, budget)


def _is_stale(ref: RefHealth, policy: UpkeepPolicy, now: datetime) -> bool:
    begun = begun_at(ref.name)
    kept_for = policy.refused_for if is_refused(ref.name) else AUDIT_KEPT_FOR
    return begun is not None and begun < now - kept_for


def _drop_branches(look: Look) -> PlannedStep:
    stale = [ref.name for ref in look.stale_branches]
    names = f": {_some(stale)}" if stale else ""
    kept = in_days(look.policy.refused_for)
    has_stale = Condition(
        f"{counted(len(stale), 'stale branch', 'stale branches')}{names} (refused ones of more"
        f" than {kept}, and those of dead writers)",
        bool(stale),
    )
    return _step(
        look,
        "drop_branches",
        [has_stale],
        not_before=_refused_until(look),
        parameters={"refused_before": (look.now - look.policy.refused_for).isoformat()},
    )


def _refused_until(look: Look) -> datetime | None:
    """Return when the next branch of a refused or dead write has been kept for long enough."""
    moments = []
    for ref in look.health.refs:
        begun = begun_at(ref.name)
        if begun:
            is_kept = is_refused(ref.name)
            moments.append(begun + (look.policy.refused_for if is_kept else AUDIT_KEPT_FOR))
    return min((at for at in moments if at > look.now), default=None)


def _expire_snapshots(look: Look) -> PlannedStep:
    policy, health = look.policy, look.health
    cutoff = look.now - policy.keep_snapshots_for
    old = [at for at in health.snapshot_times[: -policy.keep_at_least] if at < cutoff]
    pins = _pins(look)
    first_needed = min((pin.committed_at for pin in pins if pin.needs_later), default=cutoff)
    older_than = min(cutoff, first_needed)
    pinned = _pinned_times(pins, health.snapshot_times, policy.keep_at_least)
    expirable = [at for at in old if at < older_than and at not in pinned]
    age = in_days(policy.keep_snapshots_for)
    conditions = [
        Condition(
            f"{counted(len(expirable), 'snapshot is', 'snapshots are')} older than {age} and needed"
            f" by nothing; the newest {policy.keep_at_least} stay in any case",
            bool(expirable),
        )
    ]
    conditions += [Condition(text, False) for text in _held_by(pins, old)]
    rhythm = look.rhythm("expire_snapshots", EXPIRY_EVERY)
    if expirable and rhythm:
        conditions.append(Condition("snapshots expired within the last day", False))
    return _step(
        look,
        "expire_snapshots",
        conditions,
        is_due=bool(expirable) and rhythm is None,
        gain=Gain(fewer_snapshots=len(expirable)),
        not_before=rhythm if expirable else _oldest_until(look),
        parameters={
            "older_than": older_than.isoformat(),
            "keep": str(policy.keep_at_least),
        },
    )


def _pins(look: Look) -> list[SnapshotPin]:
    """Return what pins snapshots, each once, but for the branches that go first."""
    stale = look.stale_branches
    pins = {}
    for ref in look.health.refs:
        if ref not in stale:
            owner = f"{'branch' if ref.is_branch else 'tag'} {ref.name}"
            pins[owner] = SnapshotPin(owner, ref.snapshot_id, ref.committed_at)
    going = {f"branch {ref.name}" for ref in stale}
    for pin in look.health.pins:
        if pin.owner not in going:
            pins.setdefault(pin.owner, pin)
    return list(pins.values())


def _pinned_times(
    pins: Sequence[SnapshotPin], times: Sequence[datetime], keep: int
) -> set[datetime]:
    """Return the moments of snapshots that refs keep: a tag its own, a branch the newest few up
    to its own.

    Which snapshots a branch descends from is not told here: those of other branches may be
    counted for its own, and expiry that then finds nothing waits for a change.
    """
    pinned = set()
    for pin in pins:
        if pin.owner.startswith("branch "):
            pinned.update([at for at in times if at <= pin.committed_at][-keep:])
        elif not pin.needs_later:
            pinned.add(pin.committed_at)
    return pinned


def _held_by(pins: Sequence[SnapshotPin], old: Sequence[datetime]) -> Iterator[str]:
    for pin in pins:
        held = [at for at in old if at == pin.committed_at]
        if pin.needs_later:
            held = [at for at in old if at >= pin.committed_at]
        if held:
            snapshots = counted(len(held), "older snapshot stays", "older snapshots stay")
            yield (
                f"{snapshots}, for the {pin.owner} needs that of {pin.committed_at:%Y-%m-%d}"
                + (" and all since" if pin.needs_later else "")
            )


def _oldest_until(look: Look) -> datetime | None:
    """Return when the oldest snapshot that may go is old enough; None where all stay."""
    times = look.health.snapshot_times[: -look.policy.keep_at_least]
    moments = (at + look.policy.keep_snapshots_for for at in times)
    return min((at for at in moments if at > look.now), default=None)


def _rewrite_manifests(look: Look) -> PlannedStep:
    health = look.health
    needed = health.needed_manifests
    last = look.past.last_done(health.table, "rewrite_manifests")
    if last:
        # What the last rewrite could not join is not tried again and again.
        needed = max(needed, int(last.figures.get("manifests_after", 0)))
    added = MANIFESTS_OF_COMPACTION if look.compacts else 0
    needless = health.manifests + added - needed
    beside = f", and {added} that the compaction may add" if added else ""
    has_many = Condition(
        f"{counted(health.manifests, 'manifest', 'manifests')} of"
        f" {size_text(health.manifest_bytes)} for"
        f" {counted(health.data_files, 'data file', 'data files')}{beside}"
        f" ({needed + NEEDLESS_MANIFESTS} or more)",
        needless >= NEEDLESS_MANIFESTS,
    )
    return _step(
        look,
        "rewrite_manifests",
        [has_many],
        gain=Gain(
            fewer_manifests=max(0, health.manifests - needed), reads_a_day=look.reads_a_day
        ),
        cost_bytes=2 * health.manifest_bytes,
    )


def _remove_orphans(look: Look) -> PlannedStep:
    conditions = list(_listing_conditions(look, "remove_orphans"))
    return _step(
        look,
        "remove_orphans",
        conditions,
        not_before=_next_listing(look, "remove_orphans"),
        parameters={"older_than": (look.now - look.policy.orphans_after).isoformat()},
    )


def _listing_conditions(look: Look, step: StepName) -> Iterator[Condition]:
    """Yield what decides whether a table's files are listed: that there may be some to remove,
    and that it was not done lately.
    """
    last = look.last_look(step)
    if last is None:
        yield Condition("files that no metadata names were not looked for yet", True)
        if look.now < _first_ripe_at(look):
            age = in_days(look.policy.orphans_after)
            yield Condition(f"the table, so each of its files, is younger than {age}", False)
        return
    when = f"{last.ended_at:%Y-%m-%d %H:%M}"
    if look.is_unchanged_since(last):
        # What was too young then, and is old enough now, is found by one more look.
        was_final = last.ended_at >= _ripe_at(look)
        is_ripe = not was_final and look.now >= _ripe_at(look)
        yield Condition(f"nothing changed since the files were listed at {when}", is_ripe)
    else:
        yield Condition(f"the table changed since its files were listed at {when}", True)
    rhythm = look.rhythm(step, LISTING_EVERY)
    if rhythm:
        yield Condition(f"files were listed within the last {in_days(LISTING_EVERY)}", False)


def _first_ripe_at(look: Look) -> datetime:
    """Return when any file of the table may be old enough to be removed: it is known by its
    oldest snapshot, or by upkeep where that has expired.
    """
    known = [*look.health.snapshot_times, *look.past.times_of(look.health.table)]
    return min(known, default=look.now) + look.policy.orphans_after


def _ripe_at(look: Look) -> datetime:
    """Return when all that may have been left behind by the last change is old enough."""
    changes = [*look.health.snapshot_times, *(ref.committed_at for ref in look.health.refs)]
    return max(changes, default=look.now) + look.policy.orphans_after


def _next_listing(look: Look, step: StepName) -> datetime | None:
    last = look.last_look(step)
    if last is None:
        return _first_ripe_at(look)
    rhythm = look.rhythm(step, LISTING_EVERY)
    if not look.is_unchanged_since(last):
        return rhythm
    if last.ended_at >= _ripe_at(look):
        return None
    return max(rhythm or look.now, _ripe_at(look))


def _remove_lost_metadata(look: Look) -> PlannedStep:
    lost, last = look.health.lost_metadata_files, look.last_look("remove_lost_metadata")
    parameters = {"older_than": (look.now - AUDIT_KEPT_FOR).isoformat()}
    if lost is None:
        conditions = list(_listing_conditions(look, "remove_lost_metadata"))
        not_before = _next_listing(look, "remove_lost_metadata")
        return _step(
            look,
            "remove_lost_metadata",
            conditions,
            not_before=not_before,
            parameters=parameters,
        )
    count = counted(len(lost), "metadata.json file")
    conditions = [Condition(f"{count} that no log names (1 or more)", bool(lost))]
    # Those that were left were younger than a day: a commit that goes on may still name them.
    rhythm = look.rhythm("remove_lost_metadata", AUDIT_KEPT_FOR)
    if rhythm:
        conditions.append(Condition("they were looked at within the last day", False))
    elif lost and last and look.asked_by_name and look.is_unchanged_since(last):
        conditions.append(Condition("nothing changed since they were looked at", False))
    return _step(
        look,
        "remove_lost_metadata",
        conditions,
        not_before=rhythm if lost else None,
        parameters=parameters,
    )


def _compute_statistics(look: Look, budget: DailyBytes) -> PlannedStep:
    health = look.health
    rows, last = live_rows(health), look.last_look("compute_statistics")
    changed = 1.0 if last is None else abs(rows - last.rows) / max(last.rows, 1)
    conditions = [
        Condition(
            f"{changed:.0%} more or fewer rows than at the last statistics"
            if last
            else "no statistics were computed yet",
            changed >= CHANGED_SHARE,
        ),
        Condition(
            f"{size_text(health.data_bytes)} of data ({size_text(STATISTICS_BYTES)} or more)",
            health.data_bytes >= STATISTICS_BYTES,
        ),
    ]
    rhythm = look.rhythm("compute_statistics", STATISTICS_EVERY)
    not_before = rhythm
    if not look.asked_by_name:
        conditions.append(
            Condition(f"{look.reads_a_day:.3g} reads a day (1 or more)", look.reads_a_day >= 1)
        )
        if rhythm:
            conditions.append(
                Condition(f"computed within the last {in_days(STATISTICS_EVERY)}", False)
            )
        is_wanted = all(condition.is_met for condition in conditions)
        if is_wanted and not budget.take(health.data_bytes):
            conditions.append(Condition("more than is left of today's bytes", False))
            not_before = next_day(look.now)
    return _step(
        look,
        "compute_statistics",
        conditions,
        cost_bytes=health.data_bytes,
        not_before=not_before,
    )


def _step(
    look: Look,
    step: StepName,
    conditions: Sequence[Condition],
    *,
    is_due: bool | None = None,
    gain: Gain | None = None,
    cost_bytes: int = 0,
    not_before: datetime | None = None,
    parameters: dict[str, str] | None = None,
) -> PlannedStep:
    """Return a step that is due where all conditions are met, unless `is_due` says it."""
    if is_due is None:
        is_due = all(condition.is_met for condition in conditions)
    deciding = [condition.text for condition in conditions if condition.is_met is is_due]
    return PlannedStep(
        table=look.health.table,
        step=step,
        is_due=is_due,
        reason=deciding[0],
        conditions=tuple(conditions),
        gain=gain if gain and is_due else Gain(),
        cost_bytes=cost_bytes if is_due else 0,
        uncorrected=Estimate(cost_bytes=cost_bytes if is_due else 0),
        not_before=None if is_due else not_before,
        parameters=parameters or {},
    )


def _some(names: Sequence[str]) -> str:
    """Return up to three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
