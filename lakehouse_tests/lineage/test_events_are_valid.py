"""OpenLineage's client reads the events: each facet has the fields and the schema version of its
dataclass.

`.ci/readers` installs the client; without it, this test is skipped, except in `.ci/run`.
"""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.values.write_result import Refused
from lakehouse.lineage.event_facets import EventMaker
from lakehouse.lineage.names import DatasetNames
from lakehouse.lineage.send_events import EventLog
from lakehouse.settings import Settings
from lakehouse_tests.lineage.appends import append, engine_at
from lakehouse_tests.lineage.test_event_facets import PUBLISHED, RESULTS, VISITS, WRITE

pytestmark = pytest.mark.unit

READ = """
import json
import sys
from openlineage.client import event_v2, facet_v2 as facets

OF = {
    "jobType": facets.job_type_job.JobTypeJobFacet,
    "parent": facets.parent_run.ParentRunFacet,
    "errorMessage": facets.error_message_run.ErrorMessageRunFacet,
    "symlinks": facets.symlinks_dataset.SymlinksDatasetFacet,
    "catalog": facets.catalog_dataset.CatalogDatasetFacet,
    "storage": facets.storage_dataset.StorageDatasetFacet,
    "schema": facets.schema_dataset.SchemaDatasetFacet,
    "documentation": facets.documentation_dataset.DocumentationDatasetFacet,
    "ownership": facets.ownership_dataset.OwnershipDatasetFacet,
    "version": facets.dataset_version_dataset.DatasetVersionDatasetFacet,
    "dataQualityAssertions": facets.data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet,
    "outputStatistics": facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
    "inputStatistics": facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet,
}
PARTS = {
    "fields": facets.schema_dataset.SchemaDatasetFacetFields,
    "assertions": facets.data_quality_assertions_dataset.Assertion,
    "identifiers": facets.symlinks_dataset.Identifier,
    "owners": facets.ownership_dataset.Owner,
    "run": facets.parent_run.Run,
    "job": facets.parent_run.Job,
}
seen = set()


def value(name, given):
    if name not in PARTS:
        return given
    if isinstance(given, list):
        return [value(name, one) for one in given]
    return PARTS[name](**{key: value(key, one) for key, one in given.items()})


def read(given):
    read = {}
    for name, facet in given.items():
        if not name.startswith("lakehouse_"):
            fields = {key: value(key, one) for key, one in facet.items() if key[0] != "_"}
            read[name] = OF[name](**fields)
            assert facet["_schemaURL"] == read[name]._schemaURL, (name, read[name]._schemaURL)
            seen.add(name)
    return read


def dataset(kind, given):
    return kind(**{key: read(one) if key.lower().endswith("facets") else one for key, one in given.items()})


for line in open(sys.argv[1]):
    event = json.loads(line)
    made = event_v2.RunEvent(
        eventType=event_v2.RunState[event["eventType"]],
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=event_v2.Run(event["run"]["runId"], read(event["run"]["facets"])),
        job=event_v2.Job(event["job"]["namespace"], event["job"]["name"], read(event["job"]["facets"])),
        inputs=[dataset(event_v2.InputDataset, one) for one in event["inputs"]],
        outputs=[dataset(event_v2.OutputDataset, one) for one in event["outputs"]],
    )
    assert event["schemaURL"] == made.schemaURL, made.schemaURL
print(*sorted(OF.keys() - seen), sep=", ")
"""


@pytest.mark.long
def test_the_client_of_openlineage_reads_the_events(readers: Path, settings: Settings) -> None:
    append(engine_at(settings), "0198b2f0-0000-7000-8000-000000000000")
    maker = EventMaker("lakehouse", DatasetNames(Catalog.of(settings)), settings.warehouse)
    log = EventLog(settings.openlineage_file)
    for outcome in (PUBLISHED, Refused(VISITS.name, WRITE.write_id, 5)):
        log.append(maker.end(WRITE, replace(outcome, results=RESULTS)))
    log.append(maker.failure(WRITE, ValueError(), had_conflict=True))

    done = subprocess.run(
        [readers / "bin" / "python", "-c", READ, log.path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
