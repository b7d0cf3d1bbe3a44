"""Delete files that apply to no existing data file."""

from collections.abc import Sequence

from lakehouse.iceberg.metadata.live_files import LiveFile
from lakehouse.iceberg.metadata.measured_health import PartitionKey


def dangling_deletes(files: Sequence[LiveFile]) -> list[LiveFile]:
    """Return the delete files of a snapshot that apply to no data file.

    Position deletes apply to data files of the same partition that are not newer, equality
    deletes to older ones (https://iceberg.apache.org/spec/#scan-planning). A file that would
    have to be read to decide counts as needed.
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
    """Whether a delete file applies to data files that are this old (None: no data file)."""
    if oldest is None:
        return False
    if delete_file.content == "equality deletes":
        return oldest < delete_file.sequence_number
    return oldest <= delete_file.sequence_number
