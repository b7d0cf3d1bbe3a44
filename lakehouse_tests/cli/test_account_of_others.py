"""Commands list only the Glue databases of this lakehouse; no JVM."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from lakehouse.cli.project.doctor_checks import findings
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.settings import Settings
from lakehouse_tests.cli.conftest import Lakehouse
from lakehouse_tests.cli.outcomes import records

pytestmark = pytest.mark.unit
OURS = {"silver.fruits", "silver.left_by_an_older_project"}


@dataclass
class Account:
    """An account of which one database may not be read."""

    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def named_by_user(self) -> set[str]:
        """The tables that were asked for by themselves."""
        return {
            f"{params['DatabaseName']}.{params['Name']}"
            for operation, params in self.asked
            if operation == "GetTable"
        }

    def check(self, operation: str, params: dict[str, Any]) -> None:
        """Note what is asked, and refuse what may not be read."""
        self.asked.append((operation, params))
        if operation == "GetTables" and params["DatabaseName"] == "others":
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, operation)


@pytest.fixture
def account(aws_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """Tables of the lakehouse and of others, in the account that commands look at."""
    monkeypatch.setenv("LAKEHOUSE_DEPLOYMENT", "aws")
    monkeypatch.setenv("LAKEHOUSE_BUCKET", str(aws_settings.bucket))
    monkeypatch.setenv("AWS_ENDPOINT_URL", str(aws_settings.endpoint_url))
    client = Catalog.of(aws_settings).client
    for namespace in ("silver", "others"):
        client.create_namespace(namespace)
    for name in (*OURS, "others.table"):
        client.create_table(name, Schema(NestedField(1, "id", LongType())))
    found, call = Account(), BaseClient._make_api_call  # type: ignore[attr-defined]

    def checked(self: BaseClient, operation: str, params: dict[str, Any]) -> Any:
        found.check(operation, params)
        return call(self, operation, params)

    monkeypatch.setattr(BaseClient, "_make_api_call", checked)
    yield found


@pytest.mark.long
def test_status_lists_what_is_in_the_databases_of_declared_tables(lakehouse, account):
    found = records(lakehouse("status", "--format", "json"))
    assert {one["table"] for one in found if one["exists"]} == OURS
    assert not account.named_by_user & OURS


@pytest.mark.long
@pytest.mark.usefixtures("account")
def test_doctor_looks_into_the_databases_of_declared_tables(aws_settings: Settings) -> None:
    found = {one.name: one for one in findings(aws_settings)}
    assert found["catalog"].found == "2 tables (Glue)"
    assert found["tables"].ok, found["tables"]


@pytest.mark.usefixtures("account")
def test_a_near_name_is_looked_for_among_them(lakehouse: Lakehouse) -> None:
    ran = lakehouse("files", "silver.left_by_an_older_projekt")
    assert ran.code == 2
    assert "did you mean silver.left_by_an_older_project?" in ran.err[-1]
