"""Opening files by the paths that Spark prints and people write."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, S3FileSystem, SubTreeFileSystem

from catalog.errors import BrokenFile
from catalog.files.storage import Files, local_path

BYTES = b"0123456789"


def problem(path: str, files: Files | None = None) -> BrokenFile:
    with pytest.raises(BrokenFile) as caught:
        (files or Files())(path)
    assert caught.value.values["path"] == path
    return caught.value


# --- local disk ---


@pytest.mark.parametrize("name", ["a.parquet", "a b%20c.parquet", "a#b?c.parquet", "ä:€.parquet"])
@pytest.mark.parametrize("prefix", ["", "file:", "file://", "FILE:"])
def test_a_path_is_taken_as_it_is_and_nothing_in_it_is_escaped(
    tmp_path: Path, name: str, prefix: str
) -> None:
    (tmp_path / name).write_bytes(BYTES)
    with Files()(f"{prefix}{tmp_path}/{name}") as file:
        assert (file.size(), file.seekable()) == (10, True)
        file.seek(7)
        assert file.read() == b"789"


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/a/b", "/a/b"),
        ("a/b", "a/b"),
        ("/a//b/", "/a/b"),
        ("/", ""),
        ("", ""),
        ("file:/a b%20c", "/a b%20c"),
        ("file:///a", "/a"),
        ("dbfs:/Volumes/c/s/v/x", "/Volumes/c/s/v/x"),
        ("dbfs:///Volumes/c/s/v/x", "/Volumes/c/s/v/x"),
        ("/Volumes/c/s/v/x", "/Volumes/c/s/v/x"),
        ("dbfs:/a/b", "/dbfs/a/b"),
        ("dbfs:/Volumesque", "/dbfs/Volumesque"),
        ("file://host/a", None),
        ("s3://bucket/a", None),
        ("abfss://box@account.dfs.core.windows.net/a", None),
    ],
)
def test_paths_of_mounted_file_systems_are_local(path: str, local: str | None) -> None:
    assert local_path(path) == local


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("{0}/none.parquet", "there is no file {0}/none.parquet"),
        ("file:{0}/none.parquet", "there is no file file:{0}/none.parquet"),
        ("dbfs:/none.parquet", "there is no file dbfs:/none.parquet"),
        ("{0}/file/below", "there is no file"),
        ("", "there is no file"),
        ("/", "there is no file"),
        ("file:///", "there is no file"),
        ("/proc/1/mem", "may not be read"),
        ("{0}/a\0b", "cannot be opened: Embedded NUL"),
        ("{0}/" + "x" * 300, "cannot be opened: [Errno 36]"),
        ("file://elsewhere/a", "cannot be reached"),
        ("nfs://host/a", "cannot be reached: Unrecognized filesystem type in URI: nfs://host/"),
        ("wasbs://box@account.blob.core.windows.net/a", "cannot be reached: Unrecognized"),
        ("{0}/\ud800", "cannot be opened"),
    ],
)
def test_what_cannot_be_opened_says_why(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "file").write_bytes(BYTES)
    assert words.format(tmp_path) in problem(path.format(tmp_path)).message


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_folder_says_which_files_it_holds(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "x" / "deep" / "er").mkdir(parents=True)
    for name in ("b", "a", "deep/er/c"):
        (tmp_path / "x" / name).write_bytes(BYTES)
    error = problem(f"{prefix}{tmp_path}/x/")
    assert "is a folder with 3 files" in error.message
    assert error.values["files"] == [f"{prefix}{tmp_path}/x/{n}" for n in ("a", "b", "deep/er/c")]


# --- elsewhere ---


def in_folder(folder: str, uri: str) -> tuple[FileSystem, str]:
    """A file system whose buckets are the folders in a folder."""
    return SubTreeFileSystem(folder, LocalFileSystem()), f"{urlsplit(uri).netloc}/"


@pytest.mark.parametrize(
    ("path", "bucket"),
    [
        ("s3://bucket/x y%20/a", "bucket"),
        ("s3a://bucket/x y%20/a", "bucket"),
        ("s3n://bucket/x y%20/a", "bucket"),
        ("gs://bucket//x y%20/a", "bucket"),
        ("abfss://box@account.net/x y%20/a", "box@account.net"),
    ],
)
def test_the_path_in_a_bucket_is_not_escaped_either(tmp_path: Path, path: str, bucket: str) -> None:
    (tmp_path / bucket / "x y%20").mkdir(parents=True)
    (tmp_path / bucket / "x y%20" / "a").write_bytes(BYTES)
    files = Files(partial(in_folder, str(tmp_path)))
    with files(path) as file:
        assert file.read() == BYTES
    folder = path.removesuffix("/a")
    assert problem(folder, files).values["files"] == [path]


def test_a_bucket_is_connected_once_also_by_many_threads(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "a").write_bytes(BYTES)
    asked: list[str] = []

    def connect(uri: str) -> tuple[FileSystem, str]:
        asked.append(uri)
        time.sleep(0.05)
        return in_folder(str(tmp_path), uri)

    files = Files(connect)
    threads = [Thread(target=files, args=("s3://bucket/a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files("s3a://bucket/a").close()
    assert asked == ["s3://bucket/"]


def test_files_travel_as_a_value_without_their_connections(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "a").write_bytes(BYTES)
    files = Files(partial(in_folder, str(tmp_path)))
    files("s3://bucket/a").close()
    copy = pickle.loads(pickle.dumps(files))
    assert copy("s3://bucket/a").read() == BYTES
    assert Files() == pickle.loads(pickle.dumps(Files()))


def test_a_bucket_that_cannot_be_reached_is_asked_again_for_the_next_file() -> None:
    refusals = [OSError("no route"), pa.ArrowInvalid("no region")]

    def connect(uri: str) -> tuple[FileSystem, str]:
        raise refusals.pop(0)

    files = Files(connect)
    assert "s3://bucket/a cannot be reached: no route" in problem("s3://bucket/a", files).message
    assert "s3://bucket/a cannot be reached: no region" in problem("s3://bucket/a", files).message


# --- an object store as it answers over the network ---

OBJECTS = {"bucket/x/a b%.bin": BYTES, "bucket/x/deep/c": b"c", "bucket/secret": b"s"}


class Store(BaseHTTPRequestHandler):
    """As much of S3 as reading and listing take."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        key = unquote(url.path).lstrip("/")
        if "list-type" in url.query:
            return self.answer(200, self.listing(key.rstrip("/"), parse_qs(url.query)))
        if key == "bucket/secret":
            return self.answer(403, b"")
        if key not in OBJECTS:
            return self.answer(404, b"")
        data, asked = OBJECTS[key], self.headers.get("Range")
        if asked is None:
            return self.answer(200, data)
        begin, _, end = asked.removeprefix("bytes=").partition("-")
        return self.answer(206, data[int(begin) : int(end) + 1])

    def listing(self, bucket: str, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        sizes = {key.removeprefix(f"{bucket}/"): len(data) for key, data in OBJECTS.items()}
        found = [
            f"<Contents><Key>{key}</Key><Size>{size}</Size></Contents>"
            for key, size in sizes.items()
            if key.startswith(prefix)
        ]
        count = f"<KeyCount>{len(found)}</KeyCount>"
        return f"<ListBucketResult>{count}{''.join(found)}</ListBucketResult>".encode()

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def s3() -> Iterator[Files]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    Thread(target=server.serve_forever, daemon=True).start()

    def connect(uri: str) -> tuple[FileSystem, str]:
        there = f"127.0.0.1:{server.server_port}"
        system = S3FileSystem(
            access_key="key",
            secret_key="secret",
            region="here",
            scheme="http",
            endpoint_override=there,
        )
        return system, urlsplit(uri).netloc

    yield Files(connect)
    server.shutdown()
    server.server_close()


def test_an_object_is_read_from_any_position(s3: Files) -> None:
    with s3("s3a://bucket/x/a b%.bin") as file:
        assert file.size() == 10
        file.seek(4)
        assert file.read(3) == b"456"


def test_a_prefix_of_objects_is_a_folder(s3: Files) -> None:
    error = problem("s3://bucket/x", s3)
    assert error.values["files"] == ["s3://bucket/x/a b%.bin", "s3://bucket/x/deep/c"]


def test_an_object_that_is_not_there_or_not_granted_says_so(s3: Files) -> None:
    assert "there is no file s3://bucket/none" in problem("s3://bucket/none", s3).message
    assert "ACCESS_DENIED" in problem("s3://bucket/secret", s3).message
