"""The engine of a deployment, and the masking key of its home."""

import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse.errors import LakehouseError
from lakehouse.iceberg.catalog.catalog import Catalog
from lakehouse.iceberg.catalog.catalog_file import require_own_tables
from lakehouse.iceberg.catalog.engine import Engine
from lakehouse.lineage.send_events import OpenLineageEvents
from lakehouse.settings import Settings
from lakehouse.spark.s3a import s3a_options
from lakehouse.storage.atomic_files import keep_private
from lakehouse.storage.stores import open_store

if TYPE_CHECKING:
    import dagster as dg


def open_engine(settings: Settings, *, is_read_only: bool = False) -> Engine:
    """Return the engine of these settings; it starts Spark on first use."""
    keep_private()
    if settings.deployment == "local":
        require_own_tables(settings.home)
    catalog = Catalog.of(settings)

    def session() -> object:
        from lakehouse.spark.project_code import send_project
        from lakehouse.spark.spark_server import with_server
        from lakehouse.spark.spark_session import open_session

        found = with_server(settings)
        opened_catalog = catalog.read_only() if is_read_only else catalog
        opened = open_session(found, opened_catalog, is_own_server=found != settings)
        if settings.spark_remote or settings.is_on_cluster:
            send_project(opened, settings)
        return opened

    def page() -> str:
        from lakehouse.spark.spark_session import page_of_process

        return page_of_process(settings)

    return Engine(
        catalog,
        session,  # type: ignore[arg-type]
        settings.lock_dir,
        masking_key(settings),
        OpenLineageEvents(settings, catalog),
        page,
        partial(open_store, settings),
        s3a_options(settings),
    )


def engine_resource(read_settings: Callable[[], Settings]) -> "dg.ResourceDefinition":
    """Return the engine as a Dagster resource; settings are read by the run, not at import."""
    # Commands that only look at tables need the engine, and not the second that importing
    # Dagster takes.
    import dagster as dg

    description = "The Iceberg catalog, and the Spark that computes its tables."
    return dg.ResourceDefinition(
        lambda _: _engine_of_run(read_settings()), description=description
    )


def _engine_of_run(settings: Settings) -> Engine:
    """Return the engine of a run that begins."""
    if settings.spark_remote or settings.is_on_cluster:
        from lakehouse.spark.project_code import read_project

        read_project(settings)
    return open_engine(settings)


def masking_key(settings: Settings) -> bytes:
    """Return the masking key, created once per home; raises LakehouseError if it was lost."""
    if settings.masking_key:
        return settings.masking_key.encode()
    file, made = _key_file(settings), settings.home / ".masking.key.made"
    if made.exists() and not file.exists():
        raise LakehouseError(
            f"{file} is lost; expected the key that personal values of this home are masked with,"
            " since another one gives equal values another mask.",
            next_step=f"Put a copy back, or accept a new key by `rm {made}`.",
        )
    if not file.exists():
        settings.make_home()
        _make_once(file, secrets.token_hex(32))
    if not made.exists() and os.access(settings.home, os.W_OK):
        made.touch()
    return file.read_text(encoding="utf-8").encode()


def masking_keys_in_use(settings: Settings) -> tuple[bytes, ...]:
    """Return the keys that values may have been masked by so far; none is made."""
    file = _key_file(settings)
    keys = [file.read_text(encoding="utf-8")] if file.is_file() else []
    if settings.masking_key:
        keys.append(settings.masking_key)
    return tuple(key.encode() for key in keys)


def _key_file(settings: Settings) -> Path:
    return settings.home / "masking.key"


def _make_once(file: Path, text: str) -> None:
    """Write a file atomically, unless another process was first."""
    own = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        own.touch(mode=0o600)
        own.write_text(text, encoding="utf-8")
        file.hardlink_to(own)
    except FileExistsError:
        return
    finally:
        own.unlink(missing_ok=True)
