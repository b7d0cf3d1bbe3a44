"""Files that were delivered before under another name: their rows land again, and that is said."""

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.landed_names import landed_names
from lakehouse.ingestion.delivery import Delivery
from lakehouse.tables.escaping import shell_word, shown


def repeated_content(engine: Engine, table: str, delivery: Delivery) -> list[str]:
    """Say of each file of a delivery which other file had the same rows before.

    :param table: the bronze table, as it is before the delivery lands.
    """
    files = [file for file in delivery.files if file.rows]
    names = landed_names(engine, table, {file.sha256 for file in files})
    feed = delivery.ingest.feed.name
    said = []
    for file in files:
        known = names.setdefault(file.sha256, set())
        # What landed under its own name already does not land again.
        if known and file.source_file not in known:
            said.append(
                f"{shown(file.source_file)} has the content of {shown(min(known))}, which landed"
                " before it: its rows are there twice. If that is not meant, `lakehouse reject"
                f" {shell_word(file.source_file)} --feed {feed} --why …` takes them out."
            )
        known.add(file.source_file)
    return said
