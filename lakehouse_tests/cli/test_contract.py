"""`lakehouse contract`: contracts of tables on standard output, or as files."""

import pytest

from lakehouse_tests.cli.conftest import Lakehouse

pytestmark = pytest.mark.unit


def test_contracts_are_files_that_a_second_call_leaves_alone(lakehouse: Lakehouse, tmp_path):
    folder = tmp_path / "contracts"
    first = lakehouse("contract", "--out", str(folder))
    written = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    again = lakehouse("contract", "--out", str(folder))

    assert (first.code, again.code) == (0, 0)
    assert first.out == [f"{len(written)} contracts in {folder}"]
    assert "silver.fruits.odcs.yaml" in written
    assert not any("quarantine" in name for name in written)
    assert written == {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
