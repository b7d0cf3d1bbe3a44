"""What runs of tables' jobs left in the bucket: keys that hash personal values, who was erased, and
what the job told; it is removed, with the versions that the bucket kept of it.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakehouse.ingestion.staged_rows import is_left
from lakehouse.orchestration.table_jobs.job_code import RUNS
from lakehouse.privacy.places.scrubbed_place import ScrubbedPlace
from lakehouse.storage.object_store import StoredObject

if TYPE_CHECKING:
    from lakehouse.storage.s3 import S3ObjectStore

_MAY_RUN = (
    "A run of a job of AWS may be reading it, and removes it at its end; it is taken for left"
    " behind when it is a day old."
)


def remove_left_of_jobs(store: "S3ObjectStore", *, is_dry: bool) -> Iterator[ScrubbedPlace]:
    """Remove what runs left in which nothing has changed for a day."""
    runs: dict[str, list[StoredObject]] = defaultdict(list)
    for version in store.all_versions(RUNS):
        runs[version.key.removeprefix(RUNS).partition("/")[0]].append(version)
    for run, versions in sorted(runs.items()):
        place, files = f"{RUNS}{run}", len(versions)
        if not all(map(is_left, versions)):
            yield ScrubbedPlace(place, "busy", files=files, why=_MAY_RUN, owner="a job's run")
            continue
        if not is_dry:
            store.remove_versions(versions)
        yield ScrubbedPlace(place, "removed", files=files)
