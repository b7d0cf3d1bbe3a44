"""A project of somebody else: what a library lends, and who its members are; its files, and what
they come to by plain Python.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from textwrap import dedent

LOANS_RAW = '''
"""`bronze.loans_raw`: loans as they were delivered."""

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.casts import cast_sql
from lakehouse.tables.feed import Feed, bronze_table
from lakehouse.tables.table import Column

FEED = Feed(
    name="loans",
    columns=["loan", "branch", "title", "fee", "lent_on", "written_at"],
    table="bronze.loans_raw",
    time_zone="Europe/London",
)
TABLE = bronze_table(
    FEED,
    "Loans, as they were delivered.",
    extra=[Column("_day", "date", "Day of the loan, where it can be read.")],
    partitioning=["_day"],
)


@feed_asset(FEED, TABLE)
def loans_raw(delivered):
    """Loans, as they were delivered."""
    return delivered.selectExpr("*", f"{cast_sql('lent_on', 'date', FEED.time_zone)} AS _day")
'''
LOANS = '''
"""`silver.loans`: one row for each loan, as last corrected."""

from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Versions, by_day
from library.assets.bronze.loans_raw import TABLE as RAW
from library.titles import shelf_of

STRIPPED = " .,"


def tidy(title):
    """Return a title without what stands around it."""
    return title and title.strip(STRIPPED)


TABLE = IcebergTable(
    name="silver.loans",
    comment="One row for each loan, as last corrected.",
    rows_of=RAW,
    columns=[
        Column("loan", "bigint"),
        Column("branch", "string"),
        Column("title", "string"),
        Column("shelf", "string", "Where it stands."),
        Column("fee", "decimal(8,2)"),
        Column("lent_on", "date"),
        Column("written_at", "timestamp"),
    ],
    write=by_day("lent_on", since="2026-01-01"),
    partitioning=["branch"],
    versions=Versions(of="loan", newest=["written_at", "_source_file", "_source_row"]),
    rules=[not_null("loan"), not_null("branch"), not_null("lent_on")],
)


@iceberg_asset(TABLE, inputs={"delivered": versions_of(RAW, by="_day")})
def loans(delivered):
    """Loans, typed; of each the version that was written last."""
    from pyspark.sql.functions import udf

    return delivered.withColumns(
        {"title": udf(tidy)("title"), "shelf": udf(shelf_of)("title")}
    )
'''
MEMBERS_RAW = '''
"""`bronze.members_raw`: changes of members, as they were delivered."""

from lakehouse.ingestion.feed_asset import feed_asset
from lakehouse.tables.feed import Feed, FeedColumn, bronze_table

FEED = Feed(
    name="members",
    columns=[
        FeedColumn("member"), FeedColumn("city", personal=True), FeedColumn("changed_at"),
        FeedColumn("op"),
    ],
    table="bronze.members_raw",
    subject="member",
)
TABLE = bronze_table(FEED, "Changes of members, as they were delivered.")


@feed_asset(FEED, TABLE)
def members_raw(delivered):
    """Changes of members, as they were delivered."""
    return delivered
'''
MEMBERS = '''
"""`silver.members`: one row for each member."""

from lakehouse.iceberg.read.inputs import versions_of
from lakehouse.iceberg.rules.rows import not_null
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge, Versions
from library.assets.bronze.members_raw import TABLE as RAW

TABLE = IcebergTable(
    name="silver.members",
    comment="One row for each member, as last changed.",
    rows_of=RAW,
    columns=[
        Column("member", "bigint"),
        Column("city", "string"),
        Column("changed_at", "timestamp"),
        Column("written_at", "timestamp"),
    ],
    write=Merge(on="member", stamp="written_at"),
    versions=Versions(
        of="member",
        newest=["changed_at", "_source_file", "_source_row"],
        may_leave_out=True,
    ),
    row_level="merge-on-read",
    rules=[not_null("member"), not_null("city"), not_null("changed_at")],
)


@iceberg_asset(TABLE, inputs={"changes": versions_of(RAW)})
def members(changes):
    """Members, typed; of each the change that was written last."""
    return changes.selectExpr("*", "coalesce(op = 'D', false) AS _deleted")
'''
BRANCHES = '''
"""`gold.branches`: one row for each branch."""

from lakehouse.iceberg.read.inputs import changed_keys
from lakehouse.iceberg.rules.reconciliation import reconciles
from lakehouse.orchestration.iceberg_asset import iceberg_asset
from lakehouse.tables.table import Column, IcebergTable, Merge
from library.assets.silver.loans import TABLE as LOANS

TABLE = IcebergTable(
    name="gold.branches",
    comment="One row for each branch.",
    columns=[
        Column("branch", "string"),
        Column("loans", "bigint"),
        Column("dearest", "string", "The title of the highest fee, and its shelf."),
    ],
    write=Merge(on="branch"),
    rules=[reconciles(LOANS, here="sum(loans)")],
)


def summed(key, rows):
    """Return the figures of a branch."""
    import pandas as pd
    from library.titles import label

    first = rows.sort_values(["fee", "loan"], ascending=False).iloc[0]
    figures = {"branch": key[0], "loans": len(rows), "dearest": label(first.title, first.shelf)}
    return pd.DataFrame([figures])


@iceberg_asset(
    TABLE, inputs={"changed": changed_keys(LOANS, of="branch", by="lent_on"), "loans": LOANS}
)
def branches(changed, loans):
    """How many loans each branch had, and which title was the dearest."""
    theirs = loans.join(changed, "branch", "left_semi")
    figures = theirs.groupBy("branch").applyInPandas(
        summed, "branch string, loans bigint, dearest string"
    )
    return changed.join(figures, "branch", "left").selectExpr("*", "loans IS NULL AS _deleted")
'''
MONTHS = '''
"""`gold.loans_by_month`: what was lent, by month."""

from lakehouse.iceberg.read.inputs import latest
from lakehouse.orchestration.sql_asset import sql_asset
from lakehouse.tables.table import Column, IcebergTable, by_month
from library.assets.silver.loans import TABLE as LOANS

TABLE = IcebergTable(
    name="gold.loans_by_month",
    comment="One row for each month and shelf.",
    columns=[
        Column("month", "date"),
        Column("shelf", "string"),
        Column("loans", "bigint"),
        Column("fees", "decimal(18,2)"),
    ],
    write=by_month("month", like=LOANS),
)

loans_by_month = sql_asset(TABLE, inputs={"loans": latest(LOANS, by="lent_on")})
'''
MONTHS_SQL = """
SELECT trunc(lent_on, 'month') AS month, shelf, count(1) AS loans,
  CAST(sum(fee) AS decimal(18,2)) AS fees
FROM loans GROUP BY ALL
"""
TITLES = '''
"""What is known of titles; no Dagster, no Spark."""

SHELVES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def shelf_of(title):
    """Return where a title stands."""
    found = [letter for letter in (title or "").upper() if letter in SHELVES]
    return found[0] if found else None


def label(title, shelf):
    """Return a title as the catalogue has it."""
    return f"{title} [{shelf}]"
'''
CODE = {
    "assets/bronze/loans_raw.py": LOANS_RAW,
    "assets/silver/loans.py": LOANS,
    "assets/bronze/members_raw.py": MEMBERS_RAW,
    "assets/silver/members.py": MEMBERS,
    "assets/gold/branches.py": BRANCHES,
    "assets/gold/loans_by_month.py": MONTHS,
    "assets/gold/loans_by_month.sql": MONTHS_SQL,
    "titles.py": TITLES,
}
"""The modules of the project, below its package."""

_LOANS = "loan,branch,title,fee,lent_on,written_at"
_MEMBERS = "member,city,changed_at,op"


def _loan(number: int, day: int, fee: str, hour: int, branch: str = "") -> str:
    branch = branch or ("Leith", "Morningside", "Portobello")[number % 3]
    month = 1 + day // 28
    return (
        f"{number},{branch},{chr(97 + number % 26)} tale of {number}. ,{fee},"
        f"2026-{month:02}-{1 + day % 28:02},2026-04-01T{hour:02}:00:00Z"
    )


def _file(header: str, lines: Iterable[str]) -> str:
    return "\n".join([header, *lines, ""])


DELIVERIES: tuple[Mapping[str, str], ...] = (
    {
        "loans/loans_1.csv": _file(
            _LOANS, (_loan(n, n % 60, f"{n % 9}.50", 1) for n in range(300))
        ),
        "loans/loans_2.csv": _file(
            _LOANS,
            [
                *(_loan(n, n % 60, f"{n % 7}.25", 1) for n in range(300, 400)),
                _loan(900, 3, "much", 1),
            ],
        ),
        "members/members_1.csv": _file(
            _MEMBERS, (f"{n},Town {n % 5},2026-03-01T08:00:00Z,U" for n in range(60))
        ),
    },
    {
        # Some are corrected, and move to another day or branch; of some an older state comes late.
        "loans/loans_3.csv": _file(
            _LOANS,
            [
                *(_loan(n, (n + 30) % 60, "99.00", 3) for n in range(40)),
                *(_loan(n, n % 60, "77.00", 0) for n in range(40, 80)),
                *(_loan(n, n % 60, "1.00", 2, "Gorgie") for n in range(80, 90)),
            ],
        ),
        "members/members_2.csv": _file(
            _MEMBERS,
            [
                *(f"{n},City {n},2026-03-02T08:00:00Z,U" for n in range(20)),
                *(f"{n},,2026-03-02T09:00:00Z,D" for n in range(20, 25)),
                *(f"{n},Old {n},2026-02-01T08:00:00Z,U" for n in range(30, 40)),
            ],
        ),
    },
    {
        "loans/loans_4.csv": _file(
            _LOANS,
            [_loan(900, 3, "4.00", 4), *(_loan(n, 59, "3.00", 4) for n in range(80, 90))],
        ),
        "members/members_3.csv": _file(
            _MEMBERS, ["20,Back again,2026-03-03T08:00:00Z,U", "61,,2026-03-03T08:00:00Z,U"]
        ),
    },
)
"""Files by feed and name, as they come one delivery after the other."""
STAMPS = frozenset({"_ingested_at", "_quarantined_at", "_source_modified_at", "written_at"})
"""Columns that tell of the run, and not of the rows."""
TABLES = (
    "bronze.loans_raw",
    "bronze.members_raw",
    "silver.loans",
    "silver.loans_quarantine",
    "silver.members",
    "silver.members_quarantine",
    "gold.branches",
    "gold.loans_by_month",
)


def write_code(package: Path) -> None:
    """Write the modules of the project."""
    for name, text in CODE.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip(), encoding="utf-8")


def write_files(folder: Path, delivery: int) -> dict[str, list[Path]]:
    """Write the files of a delivery; return them by feed."""
    by_feed: dict[str, list[Path]] = {}
    for name, text in DELIVERIES[delivery].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        by_feed.setdefault(file.parent.name, []).append(file)
    return by_feed


def loans_by_branch(
    deliveries: Iterable[Mapping[str, str]] = DELIVERIES,
) -> dict[str, tuple[int, Decimal]]:
    """Return how many loans each branch has after some deliveries, by itself after all, and their
    fees, by plain Python.
    """
    newest: dict[str, list[str]] = {}
    for delivery in deliveries:
        for name, text in delivery.items():
            if name.startswith("loans/"):
                for line in text.splitlines()[1:]:
                    row = line.split(",")
                    if row[3] != "much" and row[5] >= newest.get(row[0], row)[5]:
                        newest[row[0]] = row
    figures: dict[str, tuple[int, Decimal]] = {}
    for row in newest.values():
        count, fees = figures.get(row[1], (0, Decimal(0)))
        figures[row[1]] = (count + 1, fees + Decimal(row[3]))
    return figures
