"""A process that delivers and keeps tables while people are erased."""

import os
from itertools import count
from pathlib import Path

from lakehouse.cli.program import run
from lakehouse.settings import Settings
from lakehouse_tests.privacy.story.customers import DAYS, Customers, file_of

_FIRST = 2 * 10**12
_UPKEEP_AFTER = 3


def deliver_and_maintain(number: int, erased_number: int, until: str) -> dict[str, list[int]]:
    """Deliver files of others, each with an old row of somebody who is erased, and keep the
    tables, until a file is there; return the numbers of the rows of others, and the exit codes.
    """
    home = Settings.from_env().home
    customers = Customers(number, erased_number, count(_FIRST))
    delivered: list[int] = []
    codes: list[int] = []
    for file in count():
        others = [1 + file % (number // 2) * 2, 3]
        rows = [customers.row(one, DAYS[file % 3]) for one in (*others, 0)]
        inbox = home / "inbox" / "bnpl" / f"more{file}.csv"
        unfinished = inbox.with_name(f"{inbox.name}.tmp")
        unfinished.write_text(file_of(rows))
        unfinished.rename(inbox)
        os.utime(inbox, (1, 1))
        codes.append(run(("ingest", "bnpl")))
        delivered += [int(row.partition(",")[0]) for row in rows[:-1]]
        if file % _UPKEEP_AFTER == _UPKEEP_AFTER - 1:
            codes.append(run(("maintain",)))
        if Path(until).exists():
            return {"delivered": delivered, "codes": codes}
    raise AssertionError("counting does not end")
