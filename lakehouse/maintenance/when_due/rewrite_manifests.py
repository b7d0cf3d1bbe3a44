"""Due condition of the manifest rewrite: many more manifests than needed."""

from lakehouse.maintenance.daily_bytes import size_text
from lakehouse.maintenance.upkeep_plan import Condition, Gain, PlannedStep, count_text
from lakehouse.maintenance.when_due.step_inputs import StepInputs, planned_step

NEEDLESS_MANIFESTS = 20
"""Minimum number of excess manifests: each read opens all manifests."""
MANIFESTS_OF_COMPACTION = 10
"""Manifests that a compaction can add: one for each commit (`partial-progress`)."""


def plan_manifests(inputs: StepInputs) -> PlannedStep:
    """Plan the rewrite of manifests."""
    health = inputs.health
    needed = health.needed_manifests
    last = inputs.past.last_done(health.table, "rewrite_manifests")
    if last:
        # Do not retry what the last rewrite could not merge.
        needed = max(needed, int(last.step_metrics.get("manifests_after", 0)))
    added = MANIFESTS_OF_COMPACTION if inputs.compacts else 0
    needless = health.manifests + added - needed
    added_note = f", and {added} that the compaction may add" if added else ""
    has_many = Condition(
        f"{count_text(health.manifests, 'manifest', 'manifests')} of"
        f" {size_text(health.manifest_bytes)} for"
        f" {count_text(health.data_files, 'data file', 'data files')}{added_note}"
        f" ({needed + NEEDLESS_MANIFESTS} or more)",
        needless >= NEEDLESS_MANIFESTS,
    )
    return planned_step(
        inputs,
        "rewrite_manifests",
        [has_many],
        gain=Gain(
            fewer_manifests=max(0, health.manifests - needed), reads_a_day=inputs.reads_a_day
        ),
        cost_bytes=2 * health.manifest_bytes,
    )
