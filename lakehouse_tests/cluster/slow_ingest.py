"""An ingest of fruits to disturb, and the expected tables."""

from pathlib import Path

from lakehouse.cli.program import run
from lakehouse.iceberg.write import stage_statements
from lakehouse.ingestion.staging.staged_rows import open_staging
from lakehouse.storage.stores import open_store
from lakehouse_tests.cluster.gates import let_wait
from lakehouse_tests.cluster.lake import Lake

FILES = {
    "1.csv": ("1,Apple,false", "2,Pear,false"),
    "2.csv": ("3,Apple,true", "4,Plum,false"),
    "3.csv": ("5,Fig,false",),
    "4.csv": ("6,Date,false",),
    "5.csv": ("7,Lime,true",),
    "6.csv": ("8,Pear,true",),
}
_TABLES = ("bronze.raw_fruits", "silver.fruits", "silver.fruits_quarantine")
_INBOX = "inbox/fruits/"


def ingest_slowly(gate: str) -> int:
    """Ingest as the command does; what it lands in bronze waits at a gate, in a task."""
    let_wait(stage_statements, "append", Path(gate))
    return run(("ingest", "fruits"))


def deliver(lake: Lake, name: str) -> None:
    """Put one of the files into the inbox."""
    rows = "\n".join(("id,fruit,berry", *FILES[name]))
    open_store(lake.settings).write_text(f"{_INBOX}{name}", f"{rows}\n")


def check_once(lake: Lake, *names: str) -> None:
    """Check that each row of some files exists once, and that nothing staged is left."""
    landed, latest = [], {}
    for name in names:
        for row in FILES[name]:
            number, fruit, _ = row.split(",")
            landed.append((number, name))
            latest[fruit] = int(number)
    rows = lake.rows("bronze.raw_fruits")
    assert sorted((row["id"], row["_source_file"]) for row in rows) == sorted(landed)
    rows = lake.rows("silver.fruits")
    assert sorted((row["fruit"], row["id"]) for row in rows) == sorted(latest.items())
    for table in _TABLES:
        assert {*lake.catalog.load(table).metadata.refs} <= {"main"}
    staging = open_staging(lake.settings)
    assert staging is not None
    assert staging.store.all_versions("staging/") == []
    assert open_store(lake.settings).objects(_INBOX) == []
