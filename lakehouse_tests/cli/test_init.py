"""`lakehouse init`: its files, messages and errors; commands find the project. No JVM."""

import io
from pathlib import Path

import pytest

from lakehouse_tests.cli.projects import forget, project_at
from lakehouse_tests.scaffolding import kinds
from lakehouse_tests.scaffolding.kinds import put
from lakehouse_tests.scaffolding.packages import complaints

pytestmark = pytest.mark.unit
FILES = [
    "shop/__init__.py",
    "shop/definitions.py",
    "shop/assets/__init__.py",
    "shop/assets/bronze/__init__.py",
    "shop/assets/silver/__init__.py",
    "shop/assets/gold/__init__.py",
    "tests/test_definitions.py",
    "conftest.py",
    "README.md",
    "Makefile",
    ".gitignore",
    ".github/workflows/ci.yml",
    "workspace.yaml",
    "pyproject.toml",
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of no table, in which commands work."""
    with project_at(tmp_path / "shop", monkeypatch) as root:
        yield root


@pytest.fixture
def call(lakehouse, monkeypatch):
    """Call a command as in a process of its own, with the home that it finds by itself."""

    def called(*arguments: str):
        monkeypatch.delenv("LAKEHOUSE_HOME", raising=False)
        forget("shop")
        return lakehouse(*arguments)

    return called


def test_a_folder_becomes_a_project(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = call("init", "shop")

    assert (ran.code, ran.err) == (0, [])
    assert ran.out == [
        *(f"wrote shop/{path}" for path in FILES),
        "Next:",
        "  cd shop",
        "  lakehouse setup",
        "  lakehouse new feed FILE...",
    ]
    assert complaints(tmp_path / "shop", tmp_path / "shop") == ""


def test_a_project_of_no_table_is_as_declared(call, project):
    ran = call("plan", "--check")

    assert (ran.code, ran.err) == (0, [])
    assert [line for line in ran.out if not line.startswith(" ")] == [
        "audit.gdpr_actions:",
        "monitoring.data_quality_metrics:",
        "monitoring.table_health:",
        "monitoring.upkeep_runs:",
    ]


@pytest.mark.long
def test_a_feed_goes_into_the_package_of_the_project(call, project, tmp_path):
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    ran = call("new", "feed", str(path), "--time-zone", "UTC")

    assert (ran.code, ran.err) == (0, [])
    assert ran.out[:4] == [
        "wrote shop/assets/bronze/orders_raw.py",
        "wrote shop/assets/silver/orders.py",
        "wrote tests/test_orders.py",
        "wrote tests/orders_sample.csv",
    ]
    text = (project / "tests" / "test_orders.py").read_text(encoding="utf-8")
    assert "from shop.assets.silver.orders import orders\n" in text
    assert "pytest_plugins" not in text
    assert call("plan", "--check").code == 0
    begun = call("new", "table", "gold.orders_daily", "--from", "silver.orders")
    assert begun.out[0] == "wrote shop/assets/gold/orders_daily.py"
    assert complaints(project, project) == ""


def test_a_name_that_the_project_has_is_rejected(call, project, tmp_path):
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    call("new", "feed", str(path), "--time-zone", "UTC")
    assets = project / "shop" / "assets"
    (assets / "bronze/orders_raw.py").rename(assets / "bronze/other.py")
    (assets / "silver/orders.py").unlink()
    ran = call("new", "feed", str(path), "--time-zone", "UTC")

    assert ran.code == 2
    assert (
        "There is a feed orders and bronze.orders_raw already; nothing was written."
        in ran.err[0]
    )


def test_the_home_is_that_of_the_project_in_its_folders_too(call, project, monkeypatch):
    monkeypatch.chdir(project / "shop" / "assets")
    assert call("maintain", "--dry-run").code == 0
    assert not (project / "shop" / "assets" / ".lakehouse").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo"], "is of the sample pipelines, which this project does not have"),
        (["ingest"], "No feed is declared; expected one"),
        (["ingest", "fruits"], "There is no feed 'fruits'; there is none yet."),
        (["backfill", "silver.fruits"], "'silver.fruits' is not a declared table"),
    ],
)
def test_what_the_samples_have_is_not_there(call, project, arguments, message):
    ran = call(*arguments)

    assert ran.code == 2
    assert message in ran.err[0]


def test_the_same_again_overwrites_nothing_and_writes_what_is_missing(call, project):
    assert {line.split()[0] for line in call("init", ".").out[:14]} == {"unchanged"}
    (project / "shop/definitions.py").write_text("# mine\n")
    with (project / "pyproject.toml").open("a") as file:
        file.write("# mine\n")
    (project / "workspace.yaml").unlink()
    ran = call("init", ".")

    assert ran.code == 0
    assert [line for line in ran.out[:14] if not line.startswith("unchanged")] == [
        "kept shop/definitions.py",
        "wrote workspace.yaml",
        "kept pyproject.toml",
    ]
    assert (project / "shop/definitions.py").read_text() == "# mine\n"


def test_what_a_repository_begins_with_is_kept(call, tmp_path):
    root = tmp_path / "shop"
    put(root, "README.md", "# Ours\n")
    (root / ".gitignore").write_bytes("*.log\n# für uns\n".encode("latin-1"))
    put(root / ".git", "config", "")
    ran = call("init", str(root))

    assert ran.code == 0
    assert f"kept {root}/README.md" in ran.out
    assert (
        f"Add .lakehouse/ to {root}/.gitignore: the rows of your tables are in it." in ran.out
    )
    assert (root / "README.md").read_text() == "# Ours\n"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("pyproject.toml", "is already there with other content; nothing was written"),
        ("shop/definitions.py", "is already there with other content; nothing was written"),
        ("conftest.py", "is already there with other content; nothing was written"),
    ],
)
def test_a_folder_of_something_else_is_rejected(call, tmp_path, path, message):
    root = tmp_path / "shop"
    put((root / path).parent, Path(path).name, "# other\n")
    ran = call("init", str(root))

    assert ran.code == 2
    assert message in ran.err[0]
    assert [found for found in root.rglob("*") if found.is_file()] == [root / path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["json"], "is 'json'; expected"),
        (["pandas"], "is 'pandas'; expected"),
        (["x", "--name", "lakehouse"], "is 'lakehouse'; expected"),
        (["2026"], "The name of the package is ''; expected"),
        (["x", "--name", "My Shop"], "is 'My Shop'; expected"),
        (["x", "--name", "class"], "is 'class'; expected"),
        (["file"], "Directory 'file' is a file"),
        ([""], "FOLDER is empty"),
        ([], "Missing argument 'FOLDER'"),
    ],
)
def test_what_cannot_be_a_project_is_named(call, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "file", "")
    ran = call("init", *arguments)

    assert ran.code == 2
    assert message in " ".join(ran.err)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_in_a_project_is_rejected(call, project):
    ran = call("init", "shop")

    assert ran.code == 2
    assert f"shop lies in the project of {project}; expected a folder" in ran.err[0]
    assert not (project / "shop" / "pyproject.toml").exists()


def test_the_package_has_the_name_of_the_folder_as_python_can_have_it(call, tmp_path):
    assert call("init", str(tmp_path / "1. My-Shop")).code == 0
    assert (tmp_path / "1. My-Shop" / "my_shop" / "definitions.py").is_file()


def test_another_name_of_a_project_is_rejected(call, project):
    ran = call("init", ".", "--name", "store")

    assert ran.code == 2
    assert "is the project shop already; expected it, or another folder" in ran.err[0]


@pytest.mark.parametrize(
    ("definitions", "code", "message"),
    [
        ("", 2, "shop.definitions has no values of the type Project; expected one."),
        ("import nowhere\n", 1, "shop/definitions.py:1 cannot be imported"),
        ("1 / 0\n", 1, "shop/definitions.py:1 cannot be imported: ZeroDivisionError"),
        (
            "from lakehouse.project import Project\nP = Project('shop.tables')\n",
            1,
            "There is no package shop.tables; expected the one of the assets",
        ),
    ],
)
def test_definitions_that_are_none_are_named(call, project, definitions, code, message):
    (project / "shop" / "definitions.py").write_text(definitions)
    ran = call("plan")

    assert ran.code == code
    assert message in ran.err[0]


def test_definitions_may_have_more_of_dagster(call, project):
    (project / "shop" / "definitions.py").write_text(
        "import dagster as dg\n"
        "from lakehouse.project import Project\n"
        "PROJECT = Project('shop.assets')\n"
        "@dg.asset\n"
        "def report(): ...\n"
        "defs = dg.Definitions.merge(PROJECT.defs, dg.Definitions(assets=[report]))\n"
    )
    assert call("plan", "--check").code == 0
    assert call("status").code == 0


def test_a_module_that_is_not_there_is_named(call, project, monkeypatch):
    monkeypatch.setenv("LAKEHOUSE_DEFINITIONS", "shop.defs")
    ran = call("plan")

    assert ran.code == 2
    assert "There is no module shop.defs, which LAKEHOUSE_DEFINITIONS or" in ran.err[0]


def test_a_missing_file_is_told_before_anything_is_asked(call, project, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ran = call("new", "feed", "nowhere.csv")

    assert ran.code == 2
    assert "File 'nowhere.csv' does not exist" in " ".join(ran.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["check"],
        ["cost"],
        ["quarantine"],
        ["alerts"],
        ["erasures"],
        ["maintain", "--dry-run"],
        ["new", "table", "gold.upkeep", "--from", "monitoring.upkeep_runs"],
    ],
    ids=" ".join,
)
def test_commands_work_where_nothing_is_declared_yet(call, project, arguments):
    ran = call(*arguments)

    assert ran.code == 0, ran.err


@pytest.mark.long
def test_doctor_says_which_project_a_folder_is_of(call, project, monkeypatch):
    def said() -> list[str]:
        return [" ".join(line.split()) for line in call("doctor").out]

    assert f"ok project shop.definitions ({project})" in said()
    monkeypatch.chdir(project.parent)
    none = "ok project none in this folder or above it, so that of the sample pipelines"
    assert none in said()


def test_people_of_a_project_are_found_by_its_own_columns(call, project, tmp_path):
    path = put(tmp_path, "orders.csv", kinds.ORDERS)
    call("new", "feed", str(path), "--time-zone", "UTC")

    assert call("export", "customer_id=1").code == 0
    assert "customer_id" in " ".join(call("export", "merchant_id=1").err)
