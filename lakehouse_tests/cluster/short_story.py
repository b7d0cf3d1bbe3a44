"""Two days of transactions in a lakehouse whose process is told the whole of their story: they come,
one file late, are kept, computed anew, and somebody of them is erased.

One process for all of it, since the start of each takes as long as what it does.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from lakehouse.cli.program import run
from lakehouse.cli.project.demo import FIRST_DAY
from lakehouse.definitions import definitions
from lakehouse.orchestration.asset_keys import asset_key
from lakehouse.orchestration.runs.instance import open_instance
from lakehouse.orchestration.runs.run_in_process import materialize
from lakehouse.sample_data.bnpl.generator import Generated, generate
from lakehouse.settings import Settings
from lakehouse_tests.assets import bnpl_oracle
from lakehouse_tests.assets.deliveries import CLEAN, PROFILES, QUARANTINE, RAW, SUMMARY
from lakehouse_tests.cluster.lake import Lake
from lakehouse_tests.cluster.transactions import (
    FEED,
    check_truth,
    contents,
    summary_of,
    summary_without,
    without,
)

_DAYS, _ROWS_PER_DAY = 2, 60
REQUEST = "R-1"
_HOLDING = (RAW, CLEAN, QUARANTINE, PROFILES)
"""The tables that hold people."""


def live_through(folder: str) -> dict[str, Any]:
    """Tell the story, and return what the tables held after each part of it.

    :param folder: where files are written before they are delivered.
    """
    lake = Lake(Settings.from_env(), {})
    days = generate(Path(folder), FIRST_DAY, days=_DAYS, rows_per_day=_ROWS_PER_DAY, seed=1)
    lake.put(FEED, *days.files)
    _do("ingest", FEED)
    check_truth(lake, days)

    person = _somebody(days)
    late = _write_late(days, person)
    lake.put(FEED, late)
    _do("ingest", FEED)
    told = {"come": contents(lake), "files": [_files_read(lake)]}

    _do("maintain", RAW, PROFILES)
    told |= {"kept": contents(lake), "files": [*told["files"], _files_read(lake)]}

    last = max(days.truth.clean_by_day)
    for name in (CLEAN, SUMMARY):
        lake.catalog.load(name).delete(f"transaction_date >= '{last}'")
    told |= {"damaged": contents(lake)}
    _materialize_days(last, last)
    told |= {"computed anew": contents(lake)}

    told |= {"others": without(lake, _of_person(person), _HOLDING)}
    _do("erase", f"customer_id={person}", "--request", REQUEST, "--now")
    _do("erase", "--request", REQUEST, "--elsewhere-done")
    _do("erasures", "verify", REQUEST, "--subject", f"customer_id={person}")
    rows = contents(lake)
    others = summary_without(person, [*days.files, late])
    return told | {
        "erased": {name: rows[name] for name in _HOLDING},
        "summary is of others": summary_of(lake.rows(SUMMARY)) == others,
    }


def check_told(told: Mapping[str, Any]) -> None:
    """See that what a story told is as it has to be."""
    before, after = told["files"]
    assert all(count < before[name] for name, count in after.items()), told["files"]
    assert told["kept"] == told["come"]
    assert told["damaged"] != told["come"]
    assert told["computed anew"] == told["come"]
    assert told["erased"] == told["others"]
    assert told["erased"] != {name: told["come"][name] for name in told["erased"]}
    assert told["summary is of others"]


def _do(*command: str) -> None:
    status = run(command)
    assert status == 0, f"{command} ended with {status}"


def _somebody(days: Generated) -> int:
    """Return who has the most transactions."""
    clean = bnpl_oracle.clean_rows(days.files)
    ((person, _),) = Counter(clean.customer).most_common(1)
    return int(person)


def _write_late(days: Generated, person: int) -> Path:
    """Write a file with two transactions of a person on the last day, one of which is refused."""
    file = days.files[-1].with_name("bnpl_late.csv")
    header, first, *_ = days.files[-1].read_text(encoding="utf-8").splitlines()
    row = dict(zip(header.split(","), first.split(","), strict=True))
    row |= {"customer_id": str(person), "customer_email": _address_of(person)}
    rows = [
        row | {"transaction_id": "1", "amount": "10.00"},
        row | {"transaction_id": "2", "amount": "much"},
    ]
    lines = [header, *(",".join(one.values()) for one in rows)]
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return file


def _files_read(lake: Lake) -> dict[str, int]:
    """Return how many files a read opens, of the tables to which late files add small ones."""
    counts = {}
    for name in (RAW, PROFILES):
        tasks = [*lake.catalog.load(name).scan().plan_files()]
        deletes = {file.file_path for task in tasks for file in task.delete_files}
        counts[name] = len(tasks) + len(deletes)
    return counts


def _materialize_days(first: str, last: str) -> None:
    """Compute days of silver and gold in full, as the UI does, in this process."""
    settings = Settings.from_env()
    selection = dg.AssetSelection.assets(asset_key(CLEAN), asset_key(SUMMARY))
    with open_instance(settings) as instance:
        project = definitions(lambda: settings)
        result = materialize(project, instance, selection, partition=(first, last))
    assert result.success, result.messages


def _address_of(customer: int) -> str:
    """Return the address that the generated files have of a customer."""
    return f"customer{customer}@example.com"


def _of_person(person: int) -> Callable[[Mapping[str, Any]], bool]:
    """Return what tells whether a row is of a person."""

    def is_theirs(row: Mapping[str, Any]) -> bool:
        if row["customer_id"] is None:
            return row["customer_email"] == _address_of(person)
        return str(row["customer_id"]) == str(person)

    return is_theirs
