"""CONTRIBUTING.md names files that exist."""

import re

import pytest

from lakehouse_tests.docs.markdown import ROOT

pytestmark = pytest.mark.unit


def test_named_files_exist() -> None:
    files = [
        "/" + path.relative_to(ROOT).as_posix() for path in ROOT.glob("lakehouse*/**/*.py")
    ]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_0-9/]+[.]py)`", text))
    assert len(named) > 50
    assert not [name for name in named if not any(file.endswith(f"/{name}") for file in files)]
