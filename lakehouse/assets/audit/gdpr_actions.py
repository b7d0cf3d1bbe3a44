"""`audit.gdpr_actions`: the tamper-evident log of erasure requests."""

from lakehouse.iceberg.write.append_without_spark import DIRECT_APPENDS
from lakehouse.orchestration.asset_specs import table_spec
from lakehouse.tables.table import Append, Column, IcebergTable

TABLE = IcebergTable(
    name="audit.gdpr_actions",
    comment="What was done about requests to erase people, each row once.",
    columns=[
        Column("sequence", "bigint", "Number of the row, counted from 1.", required=True),
        Column("at", "timestamp", "When it was done.", required=True),
        Column("action", "string", "What was done.", required=True),
        Column("request", "string", "Id of the request.", required=True),
        Column("subject", "string", "The column that stands for the person."),
        Column(
            "person",
            "string",
            "Keyed hash of the person; NULL where it was done for all of it.",
        ),
        Column("who", "string", "Name of the user who did it.", required=True),
        Column("counts", "string", "Rows, files and bytes, as JSON.", required=True),
        Column("snapshots", "string", "Snapshot ids by table, as JSON.", required=True),
        Column(
            "files",
            "string",
            "SHA-256 of the content of files that were written anew, before and after, as JSON.",
            required=True,
        ),
        Column("previous_hash", "string", "Hash of the row before.", required=True),
        Column("hash", "string", "SHA-256 of this row and the hash before.", required=True),
        Column("run_id", "string", "What the rows were appended for, once.", required=True),
    ],
    write=Append(once_by=("run_id",)),
    properties=DIRECT_APPENDS,
    owner="data-platform",
)

ASSET = table_spec(
    TABLE,
    description=(
        "Actions on requests to erase people: action, request, person as a keyed hash, counts,"
        " snapshots and files. Each row contains the hash of the previous one, so that a"
        " changed or removed row is detected. It contains no personal values."
    ),
)
