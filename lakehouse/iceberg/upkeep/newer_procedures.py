"""Procedures that older Iceberg releases lack, such as 1.7.1 of AWS Glue 5.0."""

import re
from typing import TYPE_CHECKING

from lakehouse.iceberg.metadata.engine import Engine
from lakehouse.tables.quoting import identifier

if TYPE_CHECKING:
    from pyspark.sql import Row

# Messages of Spark 3.5, which has no CALL statement; with Spark 4, Iceberg is always new
# enough.
_MISSING = re.compile(
    r"Procedure system\.(\w+) not found|Unknown argument: (\w+)"
    r"|Syntax error at or near 'CALL'(?s:.*)CALL \S+\.system\.(\w+)"
)


class ProcedureMissing(Exception):
    """Spark's Iceberg release lacks what a step needs; the message names both, and nothing was
    done.
    """


def call_newer(engine: Engine, call: str) -> "list[Row]":
    """Call a procedure of the catalog, and return its rows.

    :param call: such as `expire_snapshots(table => 'lakehouse.silver.fruits')`.
    :raises ProcedureMissing: if Iceberg lacks the procedure or an argument.
    """
    system = f"{identifier(engine.catalog.name)}.system"
    try:
        return engine.sql(f"CALL {system}.{call}").collect()
    except Exception as error:
        missing = _MISSING.search(str(error))
        if missing is None:
            raise
        (version,) = engine.sql(f"SELECT {system}.iceberg_version()").head() or ("(unknown)",)
        raise ProcedureMissing(
            f"the Iceberg that Spark has here, {version}, has no {missing[missing.lastindex or 0]}"
        ) from error
