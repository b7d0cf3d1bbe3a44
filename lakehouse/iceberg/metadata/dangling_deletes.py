"""Delete files that delete from no data file that there is."""

from collections.abc import Sequence

from lakehouse.iceberg.metadata.live_files import LiveFile
from lakehouse.iceberg.metadata.measured_health import PartitionKey


def dangling_deletes(files: Sequence[LiveFile]) -> list[LiveFile]:
    """Return the delete files among a snapshot's files that no data file needs any more.

    A delete file counts for data files of its partition and spec that are not newer than it
    is; one of equality for those that are older, and without a partition for those of any
    (https://iceberg.apache.org/spec/#scan-planning). Where more cannot be told without reading
    it, it is needed.
    """
    delete_files = [file for file in files if file.content != "data"]
    if not delete_files:
        return []
    ages: dict[str, int] = {}
    oldest: dict[PartitionKey, int] = {}
    for file in files:
        if file.content != "data":
            continue
        ages[file.path] = file.sequence_number
        known = oldest.get(file.partition, file.sequence_number)
        oldest[file.partition] = min(known, file.sequence_number)
    oldest_of_all = min(oldest.values(), default=None)
    dangling = []
    for file in delete_files:
        if file.deletes_from is not None:
            age = ages.get(file.deletes_from)
        elif file.content == "equality deletes" and not file.partition.values:
            age = oldest_of_all
        else:
            age = oldest.get(file.partition)
        if not _is_needed(file, age):
            dangling.append(file)
    return dangling


def _is_needed(delete_file: LiveFile, oldest: int | None) -> bool:
    """Whether a delete file counts for a data file of this sequence number; None stands for
    none.
    """
    if oldest is None:
        return False
    if delete_file.content == "equality deletes":
        return oldest < delete_file.sequence_number
    return oldest <= delete_file.sequence_number
