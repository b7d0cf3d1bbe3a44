"""Pages are published to a folder or a bucket; every link works at any time."""

import posixpath
from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.errors import UsageError
from lakehouse.site.publish_site import LISTING, PublicFolder, publish_site
from lakehouse.site.site_job import open_destination
from lakehouse.storage.local_store import LocalObjectStore
from lakehouse_tests.site.test_pages import Read

PAGE = '<a href="{}">x</a>'
FIRST = {
    "index.html": PAGE.format("tables/a.html"),
    "tables/a.html": PAGE.format("../index.html"),
}
SECOND = {
    "index.html": PAGE.format("tables/b.html"),
    "tables/b.html": PAGE.format("c.html") + PAGE.format("b.odcs.yaml"),
    "tables/b.odcs.yaml": "kind: DataContract\n",
    "tables/c.html": PAGE.format("../index.html"),
}


class Killed(BaseException):
    """The process ends."""


class KilledFolder(PublicFolder):
    """A folder whose process ends at a step."""

    steps = 0

    def step(self) -> None:
        if KilledFolder.steps == 0:
            raise Killed
        KilledFolder.steps -= 1

    def write_text(self, key, text, content_type=""):
        self.step()
        super().write_text(key, text, content_type)

    def remove(self, seen):
        self.step()
        return super().remove(seen)


def publish(pages, folder, kind=PublicFolder):
    return publish_site(pages, kind(folder.parent), f"{folder.name}/")


def pages_in(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.*")
        if path.suffix in (".html", ".yaml")
    }


def test_an_unchanged_site_is_not_written(tmp_path):
    folder = tmp_path / "site"
    first = publish(FIRST, folder)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "site").rglob("*")}
    second = publish(FIRST, folder)

    assert (first.written, first.unchanged, first.removed) == (2, 0, 0)
    assert (second.written, second.unchanged, second.removed) == (0, 2, 0)
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "site").rglob("*")}
    assert first.place == str(tmp_path / "site" / "index.html")


def test_a_removed_page_is_written_again(tmp_path):
    publish(FIRST, tmp_path)
    (tmp_path / "tables" / "a.html").unlink()

    assert publish(FIRST, tmp_path).written == 1
    assert pages_in(tmp_path) == FIRST


@pytest.mark.parametrize("steps", range(9))
def test_after_a_kill_every_link_works_and_the_next_call_continues(tmp_path, steps):
    publish(FIRST, tmp_path)
    KilledFolder.steps = steps
    try:
        publish(SECOND, tmp_path, KilledFolder)
    except Killed:
        there = pages_in(tmp_path)
        reached, waiting = {"index.html"}, ["index.html"]
        while waiting:
            name = waiting.pop()
            for link in Read(there[name]).links:
                path = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
                assert path in there
                waiting += [path] if path not in reached else []
                reached.add(path)
    publish(SECOND, tmp_path)

    assert pages_in(tmp_path) == SECOND


def test_after_a_kill_of_the_first_call_the_next_continues(tmp_path):
    KilledFolder.steps = 1
    with pytest.raises(Killed):
        publish(FIRST, tmp_path, KilledFolder)
    publish(FIRST, tmp_path)

    assert pages_in(tmp_path) == FIRST


def test_a_folder_with_other_files_is_rejected(tmp_path):
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(UsageError, match=r"'mine\.html'.*expected nothing there"):
        publish(FIRST, tmp_path)

    assert pages_in(tmp_path) == {"mine.html": "mine"}


def test_an_unusable_folder_is_rejected():
    with pytest.raises(UsageError, match=r"/proc/x cannot be written: No such file"):
        publish(FIRST, Path("/proc/x"))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "no JSON",
        '{"files": {"../mine.html": ""}}',
        '{"files": {"/etc/mine.html": ""}}',
        '{"files": {"tables/../../mine.html": ""}}',
        '{"files": {"mine.txt": ""}}',
    ],
)
def test_an_invalid_listing_is_rejected(tmp_path, text):
    (tmp_path / LISTING).write_text(text)
    with pytest.raises(UsageError, match="is not what `lakehouse docs` wrote there"):
        publish(FIRST, tmp_path)


def test_other_users_can_read_a_site_outside_the_home(tmp_path):
    publish(FIRST, tmp_path / "site")

    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "site").rglob("*.html")}
    assert modes == {0o644}
    assert (tmp_path / "site" / "tables").stat().st_mode & 0o777 == 0o755


def test_a_bucket_has_the_same_pages_with_content_types(aws_settings):
    import boto3

    bucket = open_destination(aws_settings, "s3://lake/docs/tables")
    publish_site(FIRST, *bucket)
    made = publish_site(SECOND, *bucket)
    client = boto3.client("s3", endpoint_url=aws_settings.endpoint_url)
    keys = [item["Key"] for item in client.list_objects_v2(Bucket="lake")["Contents"]]
    index = client.get_object(Bucket="lake", Key="docs/tables/index.html")

    assert made.place == "s3://lake/docs/tables/index.html"
    assert sorted(keys) == sorted(f"docs/tables/{name}" for name in [*SECOND, LISTING])
    contract = client.get_object(Bucket="lake", Key="docs/tables/tables/b.odcs.yaml")
    assert contract["ContentType"] == "application/yaml"
    assert index["ContentType"] == "text/html; charset=utf-8"
    assert index["Body"].read().decode() == SECOND["index.html"]
    assert publish_site(SECOND, *bucket).written == 0


def test_a_missing_bucket_is_rejected(aws_settings):
    with pytest.raises(UsageError, match="There is no bucket 'none'"):
        publish_site(FIRST, *open_destination(aws_settings, "s3://none/site"))


def test_another_kind_of_address_is_rejected(settings):
    with pytest.raises(UsageError, match="expected a folder, or s3://bucket/prefix"):
        open_destination(settings, "ftp://host/site")


@pytest.mark.parametrize(
    ("place", "store", "prefix"),
    [
        ("{home}/../docs", PublicFolder, "docs/"),
        (None, LocalObjectStore, "site/"),
        ("{home}/a/b", LocalObjectStore, "b/"),
    ],
)
def test_the_default_is_the_setting_or_the_home(settings, place, store, prefix):
    named = replace(settings, docs=place and place.format(home=settings.home))
    destination, found = open_destination(named, None)

    assert (type(destination), found) == (store, prefix)


def test_a_site_in_the_home_is_private(settings):
    publish_site(FIRST, *open_destination(settings, None))

    pages = (settings.home / "site").rglob("*.*")
    assert {path.stat().st_mode & 0o777 for path in pages} == {0o600}
