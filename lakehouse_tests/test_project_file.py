"""Which project a folder belongs to."""

import pytest

from lakehouse.errors import SettingsError
from lakehouse.settings import SAMPLES, Settings
from lakehouse.settings.project_file import find_project_file

pytestmark = pytest.mark.unit
SHOP = '[tool.lakehouse]\ndefinitions = "shop.definitions"\nassets = "shop.assets"\n'


def test_the_nearest_file_upwards_that_says_so_counts(tmp_path):
    below = tmp_path / "part" / "below"
    below.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(SHOP)
    (below.parent / "pyproject.toml").write_text("[tool.other]\n")

    found = find_project_file(below)
    assert found is not None
    assert (found.root, found.definitions, found.assets) == (
        tmp_path,
        "shop.definitions",
        "shop.assets",
    )
    assert find_project_file(tmp_path.parent) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.lakehouse]\nassets = [\n", "is no TOML"),
        ('[tool.lakehouse]\nassets = "a.b"\n', "definitions is not given; expected the name"),
        (SHOP.replace('"shop.assets"', "1"), "assets is 1; expected the name of a module"),
        (SHOP.replace("shop.assets", "shop/assets"), "assets is 'shop/assets'; expected"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text)

    with pytest.raises(SettingsError) as caught:
        find_project_file(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "pyproject.toml"))
    assert message in str(caught.value)


def test_settings_are_those_of_the_project_unless_the_environment_says_otherwise(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert (Settings.from_env({}).definitions, Settings.from_env({}).project_root) == (
        SAMPLES,
        None,
    )
    (tmp_path / "pyproject.toml").write_text(SHOP)
    (tmp_path / "part").mkdir()
    monkeypatch.chdir(tmp_path / "part")
    settings = Settings.from_env({})
    assert settings.definitions == "shop.definitions"
    assert (settings.project_root, settings.home) == (tmp_path, tmp_path / ".lakehouse")
    other = Settings.from_env({"LAKEHOUSE_DEFINITIONS": "x.y", "LAKEHOUSE_HOME": "here"})
    assert (other.definitions, other.home) == ("x.y", tmp_path / "part" / "here")
