"""Contracts as others read them: by the standard's own schema, and by the `datacontract` CLI.

Both come with that program, which goes with none of our versions: `.ci/readers` installs it in an
environment of its own. Without it these tests are skipped, but in `.ci/run`.
"""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft201909Validator

from lakehouse.contracts.odcs import contract_of, to_yaml
from lakehouse.definitions import TABLES
from lakehouse.settings import Settings
from lakehouse.tables.table import IcebergTable
from lakehouse_tests.contracts.declarations import tables

pytestmark = pytest.mark.unit

HERE = Settings.from_env({"LAKEHOUSE_HOME": "/lake"})
LINT = """
import sys
from datacontract.data_contract import DataContract

for path in sys.argv[1:]:
    for check in DataContract(data_contract_file=path, all_errors=True).lint().checks:
        print(check.result.value, check.name, check.reason or "", sep="; ")
"""


@cache
def validator(readers: Path) -> Draft201909Validator:
    (schema,) = readers.glob(
        "lib/python*/site-packages/datacontract/schemas/odcs-3.2.0.schema.json"
    )
    return Draft201909Validator(json.loads(schema.read_text(encoding="utf-8")))


def problems(readers: Path, contract: dict[str, Any]) -> list[str]:
    return [error.message for error in validator(readers).iter_errors(contract)]


@pytest.mark.long
@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(table=tables())
def test_a_contract_of_any_declaration_is_valid(readers: Path, table: IcebergTable):
    assert problems(readers, contract_of(table, HERE)) == []


def test_the_schema_is_one_that_rejects(readers: Path):
    assert problems(readers, {"apiVersion": "v3.2.0", "kind": "DataContract", "ids": 1})


@pytest.mark.long
def test_the_contracts_of_all_tables_pass_the_lint(readers: Path, tmp_path: Path):
    files = []
    for name, table in TABLES.items():
        files.append(tmp_path / f"{name}.odcs.yaml")
        files[-1].write_text(to_yaml(contract_of(table, HERE)), encoding="utf-8")
    linted = subprocess.run(
        [readers / "bin" / "python", "-c", LINT, *files],
        capture_output=True,
        text=True,
        check=True,
    )

    passed = "passed; Data contract is valid against ODCS v3.2.0; "
    assert linted.stdout.splitlines() == [passed] * len(files)
    assert len(files) > 5
