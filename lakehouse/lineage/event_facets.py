"""OpenLineage events as JSON.

Built without the OpenLineage client, which would add two HTTP clients for a few dataclasses. CI
parses the events with that client. Events contain no row data: no samples, no values of personal
columns, no error texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from lakehouse.iceberg.values.write_events import BegunWrite
from lakehouse.iceberg.values.write_result import (
    Outcome,
    Pin,
    Published,
    Refused,
    RuleResult,
    by_table,
)
from lakehouse.lineage.names import DatasetName, DatasetNames, run_id_of
from lakehouse.tables import types
from lakehouse.tables.table import IcebergTable
from lakehouse.tables.types import ColumnType

EventType = Literal["START", "COMPLETE", "FAIL", "ABORT"]
Json = dict[str, Any]
PRODUCER = "urn:lakehouse"
_SPECIFICATION = "https://openlineage.io/spec"
_EVENT_SCHEMA = f"{_SPECIFICATION}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_VERSIONS = {
    "CatalogDatasetFacet": "1-1-0",
    "DataQualityAssertionsDatasetFacet": "1-1-0",
    "DatasetVersionDatasetFacet": "1-0-1",
    "DocumentationDatasetFacet": "1-1-0",
    "ErrorMessageRunFacet": "1-0-1",
    "InputStatisticsInputDatasetFacet": "1-0-0",
    "JobTypeJobFacet": "2-0-4",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
    "OwnershipDatasetFacet": "1-0-1",
    "ParentRunFacet": "1-2-0",
    "SchemaDatasetFacet": "1-2-0",
    "StorageDatasetFacet": "1-0-1",
    "SymlinksDatasetFacet": "1-0-1",
}


@dataclass(frozen=True)
class EventMaker:
    """Creates the events of one lakehouse. Each table is a job in `namespace`."""

    namespace: str
    names: DatasetNames
    warehouse: str

    def start(self, write: BegunWrite) -> Json:
        """Return the event for the start of a write."""
        return self._event("START", write, self._inputs(write), self._output(write.table, {}))

    def end(self, write: BegunWrite, outcome: Outcome) -> Json:
        """Return the event for the outcome of a write."""
        pins = outcome.pins or write.pins
        inputs = self._inputs(BegunWrite(write.table, write.write_id, write.run, pins))
        output = self._output(write.table, _facets_of(write.table, outcome))
        output["outputFacets"] = _statistics(outcome)
        kind: EventType = "FAIL" if isinstance(outcome, Refused) else "COMPLETE"
        return self._event(kind, write, inputs, output, _run_facets(outcome))

    def failure(self, write: BegunWrite, error: BaseException, *, had_conflict: bool) -> Json:
        """Return the event of a write that failed, or that is retried after a conflict."""
        kind: EventType = "ABORT" if had_conflict else "FAIL"
        message = "Another writer came first." if had_conflict else type(error).__name__
        output = self._output(write.table, {})
        return self._event(kind, write, self._inputs(write), output, _error(message))

    def _event(
        self,
        kind: EventType,
        write: BegunWrite,
        inputs: list[Json],
        output: Json,
        facets: Mapping[str, Json] | None = None,
    ) -> Json:
        job_facet = {"processingType": "BATCH", "integration": "LAKEHOUSE", "jobType": "TABLE"}
        return {
            "eventType": kind,
            "eventTime": _now(),
            "producer": PRODUCER,
            "schemaURL": _EVENT_SCHEMA,
            "run": {
                "runId": run_id_of(write.write_id),
                "facets": {**self._parent(write), **(facets or {})},
            },
            "job": {
                "namespace": self.namespace,
                "name": write.table.name,
                "facets": {"jobType": facet("JobTypeJobFacet", job_facet)},
            },
            "inputs": inputs,
            "outputs": [output],
        }

    def _parent(self, write: BegunWrite) -> dict[str, Json]:
        """Return the parent facet of a Dagster run; empty for other runs."""
        try:
            parent = str(UUID(write.run.run_id))
        except ValueError:
            return {}
        job = {"namespace": self.namespace, "name": "dagster"}
        return {"parent": facet("ParentRunFacet", {"run": {"runId": parent}, "job": job})}

    def _inputs(self, write: BegunWrite) -> list[Json]:
        pins = by_table(write.pins.values())
        return [self._input(pin) for name, pin in pins.items() if name != write.table.name]

    def _input(self, pin: Pin) -> Json:
        name = self.names.of(pin.table)
        facets = _symlinks(name)
        if pin.snapshot_id is not None:
            facets["version"] = _version(pin.snapshot_id)
        statistics = facet("InputStatisticsInputDatasetFacet", {"rowCount": pin.rows})
        return {
            "namespace": name.namespace,
            "name": name.name,
            "facets": facets,
            "inputFacets": {} if pin.rows is None else {"inputStatistics": statistics},
        }

    def _output(self, table: IcebergTable, facets: Mapping[str, Json]) -> Json:
        name = self.names.of(table.name)
        catalog = self.names.catalog
        catalog_facet = {
            "framework": "iceberg",
            "type": "jdbc" if "uri" in catalog.pyiceberg else "glue",
            "name": catalog.name,
            "warehouseUri": self.warehouse,
        }
        storage = {"storageLayer": "iceberg", "fileFormat": table.file_format}
        return {
            "namespace": name.namespace,
            "name": name.name,
            "facets": {
                **_symlinks(name),
                "catalog": facet("CatalogDatasetFacet", catalog_facet),
                "storage": facet("StorageDatasetFacet", storage),
                "schema": facet("SchemaDatasetFacet", {"fields": _fields(table)}),
                **_documentation(table),
                **facets,
            },
        }


def facet(kind: str, fields: Json) -> Json:
    """Return a facet of the specification."""
    schema = f"{_SPECIFICATION}/facets/{_VERSIONS[kind]}/{kind}.json#/$defs/{kind}"
    return {"_producer": PRODUCER, "_schemaURL": schema, **fields}


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _version(snapshot_id: int) -> Json:
    return facet("DatasetVersionDatasetFacet", {"datasetVersion": str(snapshot_id)})


def _symlinks(name: DatasetName) -> dict[str, Json]:
    if name.in_catalog is None:
        return {}
    namespace, table = name.in_catalog
    other = {"namespace": namespace, "name": table, "type": "TABLE"}
    return {"symlinks": facet("SymlinksDatasetFacet", {"identifiers": [other]})}


def _documentation(table: IcebergTable) -> dict[str, Json]:
    facets = {}
    if table.comment:
        description = {"description": table.comment}
        facets["documentation"] = facet("DocumentationDatasetFacet", description)
    if table.owner:
        owner = {"name": table.owner, "type": "MAINTAINER"}
        facets["ownership"] = facet("OwnershipDatasetFacet", {"owners": [owner]})
    return facets


def _fields(table: IcebergTable) -> list[Json]:
    fields = []
    for column in table.columns:
        field = _field(column.name, types.parse(column.type))
        fields.append({**field, "description": column.doc} if column.doc else field)
    return fields


def _field(name: str, column_type: ColumnType) -> Json:
    parts = getattr(column_type, "fields", ())
    field: Json = {"name": name, "type": str(column_type)}
    if parts:
        field["fields"] = [_field(part.name, part.type) for part in parts]
    return field


def _facets_of(table: IcebergTable, outcome: Outcome) -> dict[str, Json]:
    facets = {}
    if outcome.snapshot_id is not None and not isinstance(outcome, Refused):
        facets["version"] = _version(outcome.snapshot_id)
    if outcome.results:
        assertions = [_assertion(table, result) for result in outcome.results]
        facets["dataQualityAssertions"] = facet(
            "DataQualityAssertionsDatasetFacet", {"assertions": assertions}
        )
    return facets


def _assertion(table: IcebergTable, result: RuleResult) -> Json:
    rule = result.rule
    assertion: Json = {
        "assertion": rule.name,
        "name": rule.name,
        "success": result.passed,
        "severity": "error" if rule.can_block or rule.warns_as_error else "warn",
    }
    if len(rule.columns) == 1 and rule.columns[0] in table.column_names:
        assertion["column"] = rule.columns[0]
    # The description or value of a rule on personal columns can contain personal values.
    if not table.masked_columns.intersection(rule.columns):
        assertion["description"] = rule.description
        assertion |= _measured(result)
    return assertion


def _measured(result: RuleResult) -> Json:
    if result.rule.bounds is None:
        share = result.rule.warns_above
        expected = f"at most {share:.4g} of the rows" if share else "0 rows"
        return {"expected": expected, "actual": f"{result.failed_rows} rows"}
    if result.value is None:
        return {"expected": str(result.rule.bounds)}
    return {"expected": str(result.rule.bounds), "actual": str(result.value)}


def _statistics(outcome: Outcome) -> dict[str, Json]:
    if isinstance(outcome, Refused):
        return {}
    written = {"rowCount": 0, "size": 0, "fileCount": 0}
    if isinstance(outcome, Published):
        written = {
            "rowCount": outcome.added_rows,
            "size": outcome.added_bytes,
            "fileCount": outcome.added_files,
        }
    return {"outputStatistics": facet("OutputStatisticsOutputDatasetFacet", written)}


def _run_facets(outcome: Outcome) -> dict[str, Json]:
    if not isinstance(outcome, Refused):
        return {}
    return _error(f"Blocked by {', '.join(result.rule.name for result in outcome.reasons)}.")


def _error(message: str) -> dict[str, Json]:
    error = {"message": message, "programmingLanguage": "PYTHON"}
    return {"errorMessage": facet("ErrorMessageRunFacet", error)}
