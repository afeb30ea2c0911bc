"""WebHDFS as Hadoop's document has it: each operation, its answer, its refusals."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_scheduler.api.webhdfs.operations import UNSUPPORTED
from pai_scheduler.api.webhdfs.request import listing_pieces
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import Listing
from tests.scheduler.api.gateway import Gateway

STATUS = {
    "accessTime", "blockSize", "childrenNum", "fileId", "group", "length", "modificationTime", "owner",
    "pathSuffix", "permission", "replication", "storagePolicy", "type",
}  # fmt: skip


async def ask(client: httpx.AsyncClient, method: str, path: str, op: str, **parameters: Any) -> Any:
    """Do what needs no file; return what is answered."""
    answer = await client.request(method, path, params={"op": op, **parameters})
    assert answer.status_code == 200, answer.text
    return answer.json() if answer.content else None


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Return the status of a refusal and the name of the exception; it must look as Hadoop's do."""
    assert answer.headers["Content-Type"].startswith("application/json")
    (exception,) = answer.json().values()
    assert list(answer.json()) == ["RemoteException"]
    assert exception.keys() == {"exception", "javaClassName", "message"}
    assert re.split(r"[.$]", exception["javaClassName"])[-1] == exception["exception"]
    return answer.status_code, exception["exception"]


# -- files (with both storages where their answers are told; how a file is sent does not depend on them)


async def test_a_file_is_written_in_two_steps_and_read_in_two(gateway: Gateway) -> None:
    async with gateway.client() as alice, gateway.client("") as stranger:
        first = await alice.put("/alice/new/file", params={"op": "CREATE", "permission": "600"})
        assert (first.status_code, first.content) == (307, b"")
        second = await stranger.put(first.headers["Location"], content=b"hello")
        assert (second.status_code, second.content) == (201, b"")
        assert second.headers["Location"] == f"{gateway.url}/webhdfs/v1/alice/new/file"
        first = await alice.get("/alice/new/file", params={"op": "OPEN"})
        assert first.status_code == 307
        second = await stranger.get(first.headers["Location"])
        assert (second.status_code, second.content) == (200, b"hello")
        status = await ask(alice, "GET", "/alice/new/file", "GETFILESTATUS")
        assert status["FileStatus"]["permission"] == "600"


async def test_who_says_that_it_brings_the_data_is_not_sent_away(gateway: Gateway) -> None:
    async with gateway.client() as alice:
        data = {"data": "true"}
        written = await alice.put("/alice/f", params={"op": "CREATE", **data}, content=b"one ")
        more = await alice.post("/alice/f", params={"op": "append", **data}, content=b"two")
        assert (written.status_code, more.status_code, more.content) == (201, 200, b"")
        assert (await alice.get("/alice/f", params={"op": "OPEN", **data})).content == b"one two"


async def test_what_is_appended_may_say_where_it_belongs(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/f", b"one ")
    async with any_gateway.client() as alice:
        for step in ({"data": "true"}, {}):
            sent = []
            for offset in (4, 4):
                query: dict[str, str | int] = {"op": "APPEND", "offset": offset, **step}
                sent.append(await alice.post("/alice/f", params=query, content=b"two", follow_redirects=True))
            assert [answer.status_code for answer in sent] == ([200, 503] if step else [503, 503])
            assert "has 7 bytes" in sent[-1].json()["RemoteException"]["message"]
        assert (await alice.get("/alice/f", params={"op": "OPEN", "data": "true"})).content == b"one two"


async def test_where_to_go_is_told_instead_to_those_who_follow_no_redirect(gateway: Gateway) -> None:
    async with gateway.client() as alice:
        for method, op in (("PUT", "CREATE"), ("POST", "APPEND"), ("GET", "OPEN")):
            told = await alice.request(method, "/alice/f", params={"op": op, "noredirect": "true"})
            assert told.status_code == 200
            content = b"12" if method != "GET" else None
            done = await alice.request(method, told.json()["Location"], content=content)
            assert done.status_code in (200, 201)
        assert done.content == b"1212"


async def test_a_part_of_a_file_is_read(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"0123456789")
    async with gateway.client() as alice:
        for part, expected in (
            ("offset=3", "3456789"), ("length=2", "01"), ("offset=8&length=100", "89"),
            ("offset=4&length=0", ""),
            ("offset=10", ""),
        ):  # fmt: skip
            answer = await alice.get(f"/alice/f?op=OPEN&data=true&{part}")
            assert (answer.status_code, answer.text) == (200, expected)
            assert answer.headers["Content-Length"] == str(len(expected))


async def test_a_browser_goes_on_with_a_download_that_broke_off(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"0123456789")
    async with gateway.client() as alice:
        params = {"op": "OPEN", "data": "true"}
        whole = await alice.get("/alice/f", params=params)
        tag = whole.headers["ETag"]
        rest = await alice.get("/alice/f", params=params, headers={"Range": "bytes=4-", "If-Range": tag})
        assert (rest.status_code, rest.text) == (206, "456789")
        assert rest.headers["Content-Range"] == "bytes 4-9/10"
        other = await alice.get("/alice/f", params=params, headers={"Range": "bytes=4-", "If-Range": '"x"'})
        assert (other.status_code, other.text) == (200, "0123456789")
        beyond = await alice.get("/alice/f", params=params, headers={"Range": "bytes=10-"})
        assert refusal(beyond) == (416, "IOException")
        assert beyond.headers["Content-Range"] == "bytes */10"


async def test_a_file_is_always_downloaded_and_never_shown(gateway: Gateway) -> None:
    await gateway.put("/alice/页 面.html", b"<script>alert(1)</script>")
    async with gateway.client() as alice:
        answer = await alice.get("/alice/页 面.html", params={"op": "OPEN", "data": "true"})
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Disposition"] == (
        "attachment; filename=\"_ _.html\"; filename*=UTF-8''%E9%A1%B5%20%E9%9D%A2.html"
    )


async def test_a_folder_comes_as_one_archive(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/run/a.txt", b"a")
    await any_gateway.put("/alice/run/deep/模型.bin", b"x" * 3_000_000)
    async with any_gateway.client() as alice:
        answer = await alice.get("/alice/run", params={"op": "ARCHIVE"}, follow_redirects=True)
        assert answer.headers["Content-Disposition"] == 'attachment; filename="run.zip"'
        archive = zipfile.ZipFile(io.BytesIO(answer.content))
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["run/a.txt", "run/deep/", "run/deep/模型.bin"]
        assert archive.read("run/deep/模型.bin") == b"x" * 3_000_000
        of_a_file = await alice.get("/alice/run/a.txt", params={"op": "ARCHIVE", "data": "true"})
        assert refusal(of_a_file) == (403, "ParentNotDirectoryException")


# -- folders


async def test_what_is_there_is_described(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/d/f", b"four")
    async with any_gateway.client() as alice:
        file = (await ask(alice, "GET", "/alice/d/f", "GETFILESTATUS"))["FileStatus"]
        folder = (await ask(alice, "GET", "/alice/d/", "getfilestatus"))["FileStatus"]
        assert set(file) == set(folder) == STATUS
        assert (file["type"], file["length"], file["pathSuffix"]) == ("FILE", 4, "")
        assert (folder["type"], folder["length"], folder["blockSize"]) == ("DIRECTORY", 0, 0)
        listed = (await ask(alice, "GET", "/alice/d", "LISTSTATUS"))["FileStatuses"]["FileStatus"]
        assert [entry["pathSuffix"] for entry in listed] == ["f"]
        itself = (await ask(alice, "GET", "/alice/d/f", "LISTSTATUS"))["FileStatuses"]["FileStatus"]
        assert [entry["pathSuffix"] for entry in itself] == [""]
        summary = (await ask(alice, "GET", "/alice/d", "GETCONTENTSUMMARY"))["ContentSummary"]
        assert (summary["fileCount"], summary["directoryCount"], summary["length"]) == (1, 1, 4)
        checksum = (await ask(alice, "GET", "/alice/d/f", "GETFILECHECKSUM"))["FileChecksum"]
        assert checksum.keys() == {"algorithm", "bytes", "length"}
        acl = (await ask(alice, "GET", "/alice/d", "GETACLSTATUS"))["AclStatus"]
        assert (acl["entries"], acl["permission"]) == ([], folder["permission"])


async def test_a_long_folder_is_listed_in_parts(any_gateway: Gateway) -> None:
    for name in "abcde":
        await any_gateway.put(f"/alice/d/{name}", b"")
    async with any_gateway.client() as alice:
        seen: list[str] = []
        after, remaining = "", [5]
        while remaining[-1]:
            part = await ask(alice, "GET", "/alice/d", "LISTSTATUS_BATCH", startAfter=after, limit=2)
            listing = part["DirectoryListing"]
            names = [e["pathSuffix"] for e in listing["partialListing"]["FileStatuses"]["FileStatus"]]
            seen, after = seen + names, names[-1]
            remaining.append(listing["remainingEntries"])
    assert (seen, remaining) == (list("abcde"), [5, 3, 1, 0])


async def test_a_very_long_folder_is_listed_at_once_and_holds_nobody_up(gateway: Gateway) -> None:
    folder = gateway.folder / "files" / "alice" / "d"
    async with gateway.client() as alice:
        assert (await ask(alice, "PUT", "/alice/d", "MKDIRS")) == {"boolean": True}
        assert await ask(alice, "GET", "/alice/d", "LISTSTATUS") == {"FileStatuses": {"FileStatus": []}}
        for number in range(2500):
            (folder / f"{number:05}").touch()
        entries = (await ask(alice, "GET", "/alice/d", "LISTSTATUS"))["FileStatuses"]["FileStatus"]
    assert [entry["pathSuffix"] for entry in entries] == [f"{number:05}" for number in range(2500)]
    status = await gateway.service.files.status(Principal("alice"), StoragePath(("alice", "d")))
    pieces = list(listing_pieces(Listing([status] * 2500), StoragePath()))
    assert max(piece.count(b"pathSuffix") for piece in pieces) == 1000


async def test_a_listing_without_a_limit_has_a_bound_all_the_same(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    async def listed(*arguments: object) -> Listing:
        asked.append(arguments[3])
        return Listing([])

    monkeypatch.setattr(gateway.service.files, "list", listed)
    async with gateway.client() as alice:
        await ask(alice, "GET", "/alice", "LISTSTATUS_BATCH")
        await ask(alice, "GET", "/alice", "LISTSTATUS_BATCH", limit=10**9)
    assert asked == [1000, 5000]


async def test_home_and_trash_folders_have_paths(gateway: Gateway) -> None:
    async with gateway.client() as alice:
        assert await ask(alice, "GET", "/", "GETHOMEDIRECTORY") == {"Path": "/alice"}
        assert await ask(alice, "GET", "/alice/x", "GETTRASHROOT") == {"Path": "/alice/.Trash"}


async def test_files_are_moved_copied_and_removed(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/f", b"f")
    async with any_gateway.client() as alice:
        assert await ask(alice, "PUT", "/alice/d/e", "MKDIRS") == {"boolean": True}
        # into a folder, as in HDFS
        assert await ask(alice, "PUT", "/alice/f", "RENAME", destination="/alice/d") == {"boolean": True}
        assert await ask(alice, "PUT", "/alice/gone", "RENAME", destination="/alice/x") == {"boolean": False}
        copied = await ask(alice, "PUT", "/alice/d/f", "COPY", destination="/alice/copy")
        assert copied == {"boolean": True}
        taken = await ask(alice, "PUT", "/alice/copy", "RENAME", destination="/alice/d/f")
        assert taken == {"boolean": False}
        over = {"destination": "/alice/d/f", "renameoptions": "OVERWRITE"}
        assert await ask(alice, "PUT", "/alice/copy", "RENAME", **over) is None
        again = await alice.put("/alice/copy", params={"op": "RENAME", **over})
        assert refusal(again) == (404, "FileNotFoundException")
        full = await alice.delete("/alice/d", params={"op": "DELETE"})
        assert refusal(full) == (403, "PathIsNotEmptyDirectoryException")
        assert await ask(alice, "DELETE", "/alice/d", "DELETE", recursive="true") == {"boolean": True}
        assert await ask(alice, "DELETE", "/alice/d", "DELETE") == {"boolean": False}


async def test_a_copy_has_the_time_of_what_was_copied(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/f", b"f")
    async with any_gateway.client() as alice:
        await ask(alice, "PUT", "/alice/f", "SETTIMES", modificationtime=1_500_000_000_123, accesstime=-1)
        await ask(alice, "PUT", "/alice/f", "COPY", destination="/alice/g")
        for name in "fg":
            status = (await ask(alice, "GET", f"/alice/{name}", "GETFILESTATUS"))["FileStatus"]
            assert status["modificationTime"] == 1_500_000_000_123
        taken = await alice.put("/alice/f", params={"op": "COPY", "destination": "/alice/g"})
        assert refusal(taken) == (403, "FileAlreadyExistsException")
        assert await ask(alice, "PUT", "/alice/f", "COPY", destination="/alice/g", overwrite="true")


async def test_rights_are_changed_and_owners_stay(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/f", b"f")
    async with any_gateway.client() as alice:
        await ask(alice, "PUT", "/alice/f", "SETPERMISSION", permission="640")
        status = (await ask(alice, "GET", "/alice/f", "GETFILESTATUS"))["FileStatus"]
        assert status["permission"] == "640"
        assert await ask(alice, "PUT", "/alice/f", "SETOWNER", owner=status["owner"]) is None
        given = await alice.put("/alice/f", params={"op": "SETOWNER", "owner": "bob"})
        assert refusal(given) == (403, "AccessControlException")
        assert await ask(alice, "PUT", "/alice/f", "SETREPLICATION", replication=2) == {"boolean": True}
        assert await ask(alice, "PUT", "/alice", "SETREPLICATION", replication=2) == {"boolean": False}


# -- refusals


BAD = (400, "IllegalArgumentException")


REFUSED: list[tuple[str, str, dict[str, Any], tuple[int, str]]] = [
    ("GET", "/alice/none", {"op": "GETFILESTATUS"}, (404, "FileNotFoundException")),
    ("GET", "/alice/none", {"op": "OPEN"}, (404, "FileNotFoundException")),
    ("GET", "/alice/none", {"op": "OPEN", "data": "true"}, (404, "FileNotFoundException")),
    ("GET", "/alice", {"op": "OPEN"}, (404, "FileNotFoundException")),
    ("POST", "/alice/none", {"op": "APPEND"}, (404, "FileNotFoundException")),
    ("POST", "/alice", {"op": "APPEND"}, (404, "FileNotFoundException")),
    ("POST", "/alice/f", {"op": "APPEND", "offset": "-1"}, BAD),
    ("POST", "/alice/f", {"op": "APPEND", "offset": "x", "data": "true"}, BAD),
    ("POST", "/alice/f", {"op": "APPEND", "offset": "0", "data": "true"}, (503, "RetriableException")),
    ("PUT", "/alice/f", {"op": "CREATE"}, (403, "FileAlreadyExistsException")),
    ("PUT", "/alice/f", {"op": "CREATE", "data": "true"}, (403, "FileAlreadyExistsException")),
    ("PUT", "/alice", {"op": "CREATE", "overwrite": "true"}, (403, "FileAlreadyExistsException")),
    ("PUT", "/alice/f", {"op": "MKDIRS"}, (403, "FileAlreadyExistsException")),
    ("PUT", "/alice/f/g", {"op": "MKDIRS"}, (403, "ParentNotDirectoryException")),
    ("GET", "/alice/f", {"op": "OPEN", "data": "true", "offset": 9}, BAD),
    ("GET", "/alice/f", {"op": "OPEN", "offset": "-1", "data": "true"}, BAD),
    ("GET", "/alice/f", {"op": "OPEN", "data": "perhaps"}, BAD),
    ("PUT", "/alice/g", {"op": "CREATE", "permission": "8"}, BAD),
    ("PUT", "/alice/f", {"op": "RENAME"}, BAD),
    ("PUT", "/alice/f", {"op": "RENAME", "destination": "g"}, BAD),
    ("PUT", "/alice/f", {"op": "RENAME", "destination": "/alice/../bob/f"}, BAD),
    ("PUT", "/alice/f", {"op": "SETTIMES", "modificationtime": "9" * 19}, BAD),
    ("PUT", "/alice/f", {"op": "SETACL"}, (400, "UnsupportedOperationException")),
    ("PUT", "/alice/f", {"op": "CREATESNAPSHOT"}, (400, "UnsupportedOperationException")),
    ("POST", "/alice/f", {"op": "TRUNCATE"}, BAD),
    ("POST", "/alice/f", {"op": "TRUNCATE", "newlength": "-1"}, BAD),
    ("POST", "/alice/f", {"op": "TRUNCATE", "newlength": "9"}, BAD),
    ("POST", "/alice/g", {"op": "TRUNCATE", "newlength": "0"}, (404, "FileNotFoundException")),
    ("POST", "/alice/f", {"op": "CONCAT"}, BAD),
    ("POST", "/alice/f", {"op": "CONCAT", "sources": "g"}, BAD),
    ("POST", "/alice/f", {"op": "CONCAT", "sources": "/alice/f"}, BAD),
    ("POST", "/alice/f", {"op": "CONCAT", "sources": "/alice/g,/alice/g"}, BAD),
    ("POST", "/alice/f", {"op": "CONCAT", "sources": "/alice/folder/g"}, BAD),
    ("POST", "/alice/f", {"op": "CONCAT", "sources": "/alice/g"}, (404, "FileNotFoundException")),
    ("GET", "/alice/f", {"op": "CHECKACCESS"}, BAD),
    ("GET", "/alice/f", {"op": "CHECKACCESS", "fsaction": "write"}, BAD),
    ("GET", "/alice/g", {"op": "CHECKACCESS", "fsaction": "r--"}, (404, "FileNotFoundException")),
    ("GET", "/bob/f", {"op": "CHECKACCESS", "fsaction": "---"}, (403, "AccessControlException")),
    ("GET", "/Public", {"op": "CHECKACCESS", "fsaction": "rw-"}, (403, "AccessControlException")),
    ("GET", "/alice/f", {"op": "NOTHING"}, BAD),
    ("GET", "/alice/f", {"op": "CREATE"}, BAD),
    ("GET", "/alice/f", {}, BAD),
    ("PATCH", "/alice/f", {"op": "OPEN"}, (405, "UnsupportedOperationException")),
    ("OPTIONS", "/alice/f", {"op": "OPEN"}, (405, "UnsupportedOperationException")),
]  # fmt: skip


async def test_what_cannot_be_is_refused_as_hadoop_does(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/f", b"12345678")
    wrong = []
    async with any_gateway.client() as alice:
        for method, path, parameters, expected in REFUSED:
            answer = await alice.request(method, path, params=parameters)
            if refusal(answer) != expected:
                wrong.append((method, path, parameters, answer.text))
            # and the connection goes on
            assert (await alice.get("/alice/f", params={"op": "OPEN", "data": "true"})).content == b"12345678"
    assert wrong == []


async def test_head_is_no_method_of_it(gateway: Gateway) -> None:
    async with gateway.client() as alice:
        answer = await alice.head("/alice", params={"op": "GETFILESTATUS"})
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST, PUT, DELETE")


async def test_a_refusal_is_in_the_callers_language_and_programs_still_know_it(gateway: Gateway) -> None:
    async with gateway.client() as alice:
        params = {"op": "GETFILESTATUS"}
        answer = await alice.get("/alice/x", params=params, headers={"Accept-Language": "zh-CN"})
    message = answer.json()["RemoteException"]["message"]
    assert "/alice/x" in message
    assert re.search("[\u4e00-\u9fff]", message)
    # the `hdfs` library looks for it
    assert "does not exist" in message


async def test_parameters_are_read_as_hadoop_reads_them(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"0123456789")
    async with gateway.client() as alice:
        answer = await alice.get(
            "/alice/f?OP=open&oFFset=7&offset=1&user.name=bob&doAs=root&what=ever&data=TRUE"
        )
        assert (answer.status_code, answer.text) == (200, "789")


async def test_what_the_storage_cannot_do_now_is_worth_another_try(gateway: Gateway) -> None:
    async def dead(*_: object) -> None:
        raise StorageError(Problem.UNAVAILABLE, msg("This scheduler has no storage for files."))

    gateway.service.files.status = dead  # type: ignore[method-assign, assignment]
    async with gateway.client() as alice:
        answer = await alice.get("/alice/f", params={"op": "GETFILESTATUS"})
    assert refusal(answer) == (503, "RetriableException")
    assert answer.headers["Retry-After"]


async def test_many_ask_at_once(gateway: Gateway) -> None:
    async with gateway.client() as alice:

        async def both(number: int) -> bytes:
            params, content = {"op": "CREATE", "data": "true"}, bytes([number]) * 100_000
            await alice.put(f"/alice/{number}", params=params, content=content)
            return (await alice.get(f"/alice/{number}", params={"op": "OPEN", "data": "true"})).content

        back = await asyncio.gather(*map(both, range(20)))
    assert back == [bytes([number]) * 100_000 for number in range(20)]


async def test_how_long_a_transfer_takes_is_no_measure_of_the_scheduler(gateway: Gateway) -> None:
    def measured(name: str) -> float:
        labels = {"handler": "WebHdfsHandler"}
        return gateway.service.monitor.registry.get_sample_value(name, labels) or 0

    async with gateway.client() as alice:
        await alice.put("/alice/f", params={"op": "CREATE", "data": "true"}, content=b"12345")
        await alice.get("/alice/f", params={"op": "OPEN", "data": "true"})
        assert measured("pai_http_request_seconds_count") == 0
        assert measured("pai_stream_bytes_total") == 5
        await alice.get("/alice/f", params={"op": "GETFILESTATUS"})
    assert measured("pai_http_request_seconds_count") == 1


async def test_a_file_is_cut_joined_and_asked_about(any_gateway: Gateway) -> None:
    for name, contents in (("f", b"12345678"), ("g", b"ab"), ("h", b"cd")):
        await any_gateway.put(f"/alice/{name}", contents)
    async with any_gateway.client() as alice:
        answer = await alice.post("/alice/f", params={"op": "CONCAT", "sources": "/alice/g,/alice/h"})
        assert (answer.status_code, answer.content) == (200, b"")
        answer = await alice.post("/alice/f", params={"op": "TRUNCATE", "newlength": 10})
        assert (answer.status_code, list(answer.json())) == (200, ["boolean"])
        answer = await alice.get("/alice/f", params={"op": "OPEN", "data": "true"})
        assert answer.content == b"12345678ab"
        answer = await alice.get("/alice/f", params={"op": "CHECKACCESS", "fsaction": "rw-"})
        assert (answer.status_code, answer.content) == (200, b"")


async def test_what_a_storage_has_not_is_said_to_be_unsupported_and_named_in_the_docs(
    gateway: Gateway,
) -> None:
    text = (Path(__file__).parents[4] / "docs" / "users" / "storage.md").read_text()
    documented = text.partition("### What it has not\n")[2].partition("\n## ")[0]
    names = {name for by_method in UNSUPPORTED.values() for name in by_method}
    assert set(re.findall(r"`([A-Z]{6,})`", documented)) == names
    async with gateway.client() as alice:
        for method, operations in UNSUPPORTED.items():
            for operation in operations:
                answer = await alice.request(method, "/alice/f", params={"op": operation})
                assert answer.status_code == 400
                refusal = answer.json()["RemoteException"]
                assert refusal["exception"] == "UnsupportedOperationException"
                assert refusal["message"].startswith(f"This storage has no {operation}. ")


async def test_a_token_may_be_given_as_hadoops_delegation_token(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"12345678")
    async with gateway.client("") as nobody:
        answer = await nobody.get("/alice/f", params={"op": "OPEN", "delegation": "a"})
        assert answer.status_code == 307
        # the way on has a ticket instead
        assert "delegation" not in answer.headers["Location"]
        assert (await nobody.get(answer.headers["Location"])).content == b"12345678"
        for wrong in ("b", "nobody's"):
            answer = await nobody.get("/alice/f", params={"op": "OPEN", "data": "true", "delegation": wrong})
            assert answer.status_code == (403 if wrong == "b" else 401)
