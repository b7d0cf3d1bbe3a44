"""Warnings about repeated content. Under another name its rows land again; under the same name
they do not, even if newer content landed in between.
"""

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.iceberg.read.landed_names import has_newer_content, landed_names
from lakehouse.ingestion.delivery import Delivery
from lakehouse.tables.escaping import shell_word, shown


def repeated_content(engine: Engine, table: str, delivery: Delivery) -> list[str]:
    """Return a warning per file whose rows landed under another name or before newer content."""
    files = [file for file in delivery.files if file.rows]
    landed = landed_names(engine, table, {file.sha256 for file in files})
    feed, started_at = delivery.ingest.feed.name, delivery.ingest.started_at
    warnings = []
    for file in files:
        known = landed.setdefault(file.sha256, {})
        name = file.source_file
        if known and name not in known:
            warnings.append(
                f"{shown(name)} has the content of {shown(min(known))}, which landed before it:"
                " its rows are there twice. If that is not meant, `lakehouse reject"
                f" {shell_word(name)} --feed {feed} --why …` takes them out."
            )
        elif known and has_newer_content(engine, table, name, file.sha256, known[name]):
            warnings.append(
                f"{shown(name)} has the content of an earlier delivery of that name, and newer"
                " content came since: its rows do not land again. If they are to count, deliver"
                f" it under another name, or take the newer out: `lakehouse reject"
                f" {shell_word(name)} --feed {feed} --why …`."
            )
        known.setdefault(name, started_at)
    return warnings
