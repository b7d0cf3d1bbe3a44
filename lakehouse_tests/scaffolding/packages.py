"""An assets package for tests, with new declarations."""

import importlib
import subprocess
import sys
from datetime import date
from pathlib import Path
from types import ModuleType

from lakehouse.scaffolding.assets_package import AssetsFolder, assets_folder_of
from lakehouse.scaffolding.begin_project import write_files
from lakehouse.scaffolding.feed_plan import plan_feed
from lakehouse.scaffolding.feed_text import feed_files
from lakehouse.scaffolding.samples import read_samples

TODAY = date(2026, 6, 1)


def empty_project(folder: Path, package: str) -> AssetsFolder:
    assets = folder / package / "assets"
    assets.mkdir(parents=True)
    for package_folder in (assets.parent, assets):
        (package_folder / "__init__.py").write_text("")
    return assets_folder_of(assets)


def begin_feed(
    project: AssetsFolder, name: str, *paths: Path, time_zone: str = "UTC"
) -> list[Path]:
    plan = plan_feed(read_samples(paths), name, time_zone, TODAY)
    return write_files(feed_files(plan, project))


def imported(project: AssetsFolder, table: str) -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(f"{project.package}.{table}")


def complaints(folder: Path, root: Path, *, config: Path | None = None) -> str:
    ruff = str(Path(sys.executable).with_name("ruff"))
    settings = ["--config", str(config)] if config else ["--isolated"]
    commands = (
        [ruff, "format", "--no-cache", "--diff", *settings, str(folder)],
        [ruff, "check", "--no-cache", *settings, "--select", "E9,F,I,UP", str(folder)],
    )
    output = ""
    for command in commands:
        ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        output += ran.stdout + ran.stderr if ran.returncode else ""
    return output
