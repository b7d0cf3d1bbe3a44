"""What boto3 and moto know of AWS, read once for each worker.

Each session of boto3 reads megabytes of JSON anew, and looks into hundreds of folders for it;
PyIceberg makes one for each catalog. moto lists its own folders for each request.
"""

from functools import cache
from typing import Any

import pytest


def read_once(patch: pytest.MonkeyPatch) -> None:
    """Let all sessions and requests of this process share what the first one reads."""
    from botocore.loaders import JSONFileLoader, Loader
    from moto import backends

    read, loader = JSONFileLoader.load_file, JSONFileLoader()
    available, modules = Loader.list_available_services, tuple(backends.list_of_moto_modules())

    @cache
    def read_file(path: str) -> Any:
        return read(loader, path)

    services: dict[tuple[str, ...], list[str]] = {}

    def available_services(self: Loader, type_name: str) -> list[str]:
        where = (type_name, *self.search_paths)
        if where not in services:
            services[where] = available(self, type_name)
        return services[where]

    patch.setattr(JSONFileLoader, "load_file", lambda _, path: read_file(path))
    patch.setattr(Loader, "list_available_services", available_services)
    patch.setattr(backends, "list_of_moto_modules", lambda: modules)
