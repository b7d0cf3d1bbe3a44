"""A table that stays blocked while other runs fail is still told as blocked."""

import dagster as dg
import pytest

from lakehouse.orchestration.blocked_tables import find_blocked_tables, note_blocked
from lakehouse.tables.table import Column, IcebergTable, Overwrite

pytestmark = pytest.mark.unit

TABLE = IcebergTable("silver.a", "A table.", [Column("id", "int")], Overwrite())
READ = {"bronze.a": 7}


@dg.op
def fails() -> None:
    raise dg.Failure("As told.")


@dg.job
def failing() -> None:
    fails()


@pytest.mark.long
def test_a_table_is_blocked_however_many_other_runs_failed_since() -> None:
    declared = {TABLE.name: TABLE}
    with dg.instance_for_test() as instance:
        refusing = instance.create_run_for_job(failing, status=dg.DagsterRunStatus.FAILURE)
        note_blocked(instance, refusing.run_id, TABLE, (), READ)
        for _ in range(101):
            instance.create_run_for_job(failing, status=dg.DagsterRunStatus.FAILURE)

        assert find_blocked_tables(instance, declared, {TABLE.name: READ}) == {
            TABLE.name: refusing.run_id
        }
        assert find_blocked_tables(instance, declared, {TABLE.name: {"bronze.a": 8}}) == {}
