"""What strangers and other tenants try at the storage, and what it costs everybody else."""

from __future__ import annotations

import asyncio
import io
import itertools
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from pai_scheduler.api import http_server as server_module
from pai_scheduler.api.limits import TransferLimit
from pai_scheduler.api.webhdfs import request as webhdfs_module
from pai_scheduler.api.webhdfs import transfer as upload_module
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import OpenFile
from tests.scheduler.api.gateway import Gateway, open_gateway

MB = 2**20


def on_disk(gateway: Gateway) -> list[str]:
    """List what a folder storage holds, half files too."""
    root = gateway.folder / "files"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds, which is a failure after half a minute."""
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come about")


async def sends(gateway: Gateway, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Begin a request, as alice."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"{head}\r\nHost: x\r\nAuthorization: Bearer a\r\n\r\n".encode())
    return reader, writer


async def send_much(writer: asyncio.StreamWriter, size: int) -> None:
    """Send zeroes as fast as they are taken."""
    for _ in range(size // MB):
        writer.write(bytes(MB))
        await writer.drain()


CREATE = "PUT /webhdfs/v1/alice/f?op=CREATE&data=true HTTP/1.1"


# -- other users' files: who may do what is decided before a storage is asked, whichever it is; that an HDFS
#    itself refuses them too is in tests/scheduler/storage/hdfs


SPELLINGS = (
    "/bob/f",
    "//bob//f",
    "/bob/f/",
    "/%62ob/f",
    "/bob%2Ff",
    "/Output/bob/f",
    "/Shared/others/f",
    "/.own",
)
OPERATIONS = (
    ("GET", "OPEN"), ("GET", "ARCHIVE"), ("GET", "GETFILESTATUS"), ("GET", "LISTSTATUS"), ("PUT", "CREATE"),
    ("PUT", "MKDIRS"), ("PUT", "SETPERMISSION"), ("POST", "APPEND"), ("DELETE", "DELETE"),
    ("POST", "TRUNCATE&newlength=0"), ("POST", "CONCAT&sources=/alice/g"),
    ("GET", "CHECKACCESS&fsaction=r--"),
)  # fmt: skip


async def test_no_spelling_of_a_path_reaches_what_is_anothers(gateway: Gateway) -> None:
    await gateway.put("/bob/f", b"secret", "b")
    for path, (method, op), data in itertools.product(SPELLINGS, OPERATIONS, ("", "&data=true")):
        answer = await gateway.raw(
            f"{method} /webhdfs/v1{path}?op={op}{data} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            "Authorization: Bearer a\r\nContent-Length: 0\r\n\r\n".encode()
        )
        assert answer.startswith(b"HTTP/1.1 403 "), (path, op, answer)
        assert b'"AccessControlException"' in answer


async def test_nothing_of_anothers_is_drawn_into_ones_own_by_joining(any_gateway: Gateway) -> None:
    await any_gateway.put("/alice/f", b"own")
    await any_gateway.put("/bob/f", b"secret", "b")
    async with any_gateway.client() as alice:
        for sources in (
            "/bob/f",
            "/alice/../bob/f",
            "/alice/f/../../bob/f",
            "//bob//f",
            "/%62ob/f",
            "/Public",
        ):
            for target in ("/alice/f", "/bob/f"):
                answer = await alice.post(target, params={"op": "CONCAT", "sources": sources})
                assert answer.status_code in (400, 403), (target, sources, answer.text)
    async with any_gateway.client("b") as bob:
        assert (await bob.get("/bob/f", params={"op": "OPEN", "data": "true"})).content == b"secret"


async def test_a_token_in_the_query_opens_no_more_than_in_a_header_and_is_not_passed_on(
    gateway: Gateway,
) -> None:
    await gateway.put("/bob/f", b"secret", "b")
    async with gateway.client("") as nobody:
        for token in ("a", "", "b%00", "B"):
            query = f"op=OPEN&data=true&delegation={token}&user.name=bob&doas=bob"
            assert (await nobody.get(f"/bob/f?{query}")).status_code in (401, 403)
    async with gateway.client("a") as alice:
        # who says in a header who they are is nobody else
        assert (await alice.get("/bob/f?op=OPEN&data=true&delegation=b")).status_code == 403


async def test_a_path_that_there_cannot_be_is_a_bad_request(gateway: Gateway) -> None:
    for path in (
        "/alice/../bob/f", "/alice/%2e%2e/bob/f", "/alice/..%2fbob/f", "/alice/./f", "/alice/f%00.txt", "/..",
        "/alice/" + "a" * 256, "/%2e%2e/%2e%2e/etc/passwd",
    ):  # fmt: skip
        answer = await gateway.raw(
            f"GET /webhdfs/v1{path}?op=OPEN HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            "Authorization: Bearer a\r\n\r\n".encode()
        )
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert b'"IllegalArgumentException"' in answer


async def test_a_path_is_decoded_once_and_no_more(gateway: Gateway) -> None:
    await gateway.put("/bob/f", b"secret", "b")
    await gateway.put("/alice/%2e%2e", b"harmless")
    async with gateway.client() as alice:
        answer = await alice.get("/alice/%252e%252e", params={"op": "OPEN", "data": "true"})
    assert answer.content == b"harmless"


async def test_what_leads_elsewhere_is_not_followed(gateway: Gateway) -> None:
    await gateway.put("/bob/f", b"secret", "b")
    await gateway.put("/alice/own", b"")
    files = gateway.folder / "files"
    (files / "alice" / "link").symlink_to(files / "bob")
    (files / "alice" / "tokens").symlink_to(gateway.folder / "tokens.json")
    async with gateway.client() as alice:
        for path in ("/alice/link/f", "/alice/tokens"):
            for op in ("OPEN", "GETFILESTATUS"):
                answer = await alice.get(path, params={"op": op, "data": "true"})
                assert (answer.status_code, b"secret" in answer.content) in [(404, False), (403, False)]


async def test_both_ends_of_a_move_and_a_copy_are_checked(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"")
    await gateway.put("/bob/f", b"secret", "b")
    async with gateway.client() as alice:
        for op in ("RENAME", "COPY"):
            for source, target in (("/alice/f", "/bob/g"), ("/bob/f", "/alice/g"), ("/alice/f", "/Public/g")):
                answer = await alice.put(source, params={"op": op, "destination": target})
                assert answer.status_code == 403, (op, source, target)


@pytest.mark.parametrize("name", ["user.name", "doas", "delegation"])
async def test_nobody_is_who_the_query_says(gateway: Gateway, name: str) -> None:
    await gateway.put("/bob/f", b"secret", "b")
    async with gateway.client() as alice, gateway.client("") as stranger:
        params = {"op": "OPEN", "data": "true", name: "bob"}
        assert (await alice.get("/bob/f", params=params)).status_code == 403
        assert (await stranger.get("/bob/f", params=params)).status_code == 401
        assert (await alice.get("/", params={"op": "GETHOMEDIRECTORY", name: "bob"})).json() == {
            "Path": "/alice"
        }


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Basic",
        "Basic !!!",
        "Basic YQ==",
        "Basic YWxpY2U6",
        "Basic OmI6",
        "Bearer",
        "Negotiate x",
        "Basic /w==",
    ],
)
async def test_what_is_no_credential_opens_nothing(gateway: Gateway, authorization: str) -> None:
    async with gateway.client("") as stranger:
        headers = {"Authorization": authorization} if authorization else {}
        for op in ("OPEN", "LISTSTATUS"):
            answer = await stranger.get("/alice", params={"op": op}, headers=headers)
            assert (answer.status_code, answer.json()["RemoteException"]["exception"]) == (
                401,
                "SecurityException",
            )


# -- tickets


@pytest.fixture
async def told(gateway: Gateway) -> str:
    """Return the address that alice was told for her file."""
    await gateway.put("/alice/f", b"hers")
    await gateway.put("/alice/g", b"hers too")
    async with gateway.client() as alice:
        params = {"op": "OPEN", "length": "2"}
        return (await alice.get("/alice/f", params=params)).headers["Location"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("/alice/f", "/alice/g"), ("op=OPEN", "op=GETFILESTATUS"), ("op=OPEN", "op=ARCHIVE"),
     ("length=2", "length=3"), ("length=2", "offset=1"), ("length=2&", ""), ("ticket=", "ticket=x"),
     ("data=true", "data=true&offset=1")],
)  # fmt: skip
async def test_a_ticket_is_good_for_its_request_only(gateway: Gateway, told: str, old: str, new: str) -> None:
    assert old in told
    async with gateway.client("") as stranger:
        assert (await stranger.get(told)).content == b"he"
        answer = await stranger.get(told.replace(old, new))
        assert (answer.status_code, answer.json()["RemoteException"]["exception"]) == (403, "InvalidToken")
        for method in ("PUT", "POST", "DELETE"):
            assert (await stranger.request(method, told)).status_code == 403
        assert (await stranger.get(told.replace("/webhdfs/v1/alice/f", "/api/v1/jobs"))).status_code == 401


async def test_a_ticket_expires(gateway: Gateway, told: str) -> None:
    gateway.context.tickets._now = lambda: 1e12
    async with gateway.client("") as stranger, gateway.client() as alice:
        assert (await stranger.get(told)).status_code == 403
        # who has a token needs no ticket
        assert (await alice.get(told)).content == b"he"


async def test_tickets_are_long_and_never_the_same(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"")
    async with gateway.client() as alice:
        locations = [
            (await alice.get("/alice/f", params={"op": "OPEN"})).headers["Location"] for _ in range(20)
        ]
    tickets = {dict(parse_qsl(urlsplit(location).query))["ticket"] for location in locations}
    assert len(tickets) == 20
    assert min(map(len, tickets)) >= 43


async def test_what_is_asked_comes_back_in_the_location_without_breaking_out_of_it(gateway: Gateway) -> None:
    path = "/alice/a%0d%0aSet-Cookie:%20x%3fop=DELETE%23"
    async with gateway.client() as alice:
        answer = await alice.put(
            path, params={"op": "CREATE", "x": "1\r\nSet-Cookie: y=1", "permission": "600"}
        )
        assert answer.status_code == 307
        assert "Set-Cookie" not in answer.headers
        told = urlsplit(answer.headers["Location"])
        assert told.path == "/webhdfs/v1/alice/a%0D%0ASet-Cookie%3A%20x%3Fop%3DDELETE%23"
        assert (await alice.put(answer.headers["Location"], content=b"x")).status_code == 201
        listed = (await alice.get("/alice", params={"op": "LISTSTATUS"})).json()
    (entry,) = listed["FileStatuses"]["FileStatus"]
    assert entry["pathSuffix"] == "a\r\nSet-Cookie: x?op=DELETE#"


@pytest.mark.parametrize("host", ["x\r\nSet-Cookie: y", 'x"><script>', "x/@evil", "x y"])
async def test_a_host_that_is_none_is_refused(gateway: Gateway, host: str) -> None:
    await gateway.put("/alice/f", b"")
    answer = await gateway.raw(
        f"GET /webhdfs/v1/alice/f?op=OPEN HTTP/1.1\r\nAuthorization: Bearer a\r\nConnection: close\r\n"
        f"Host: {host}\r\n\r\n".encode()
    )
    assert b"\r\nSet-Cookie" not in answer
    assert answer.startswith(b"HTTP/1.1 400 ") or b"Location: http://x/" in answer


@pytest.mark.parametrize(
    "name", ['a"; filename="evil.exe', "a\r\nSet-Cookie: x=1", "a\\b", "\udcff\udcfe", "%41"]
)
async def test_a_files_name_cannot_break_out_of_the_header(gateway: Gateway, name: str) -> None:
    await gateway.put(f"/alice/{name}", b"x")
    async with gateway.client() as alice:
        listed = (await alice.get("/alice", params={"op": "LISTSTATUS"})).json()
        assert [entry["pathSuffix"] for entry in listed["FileStatuses"]["FileStatus"]] == [name]
        path = "".join(f"%{byte:02x}" for byte in name.encode("utf-8", "surrogateescape"))
        answer = await alice.get(f"/alice/{path}?op=OPEN&data=true")
    assert (answer.status_code, answer.content) == (200, b"x")
    assert "Set-Cookie" not in answer.headers
    disposition = answer.headers["Content-Disposition"]
    plain = disposition.split("; ")[1]
    assert plain.count('"') == 2
    assert "\\" not in plain
    assert disposition.endswith(path.upper()) or "filename*=UTF-8''" in disposition


async def test_an_archive_has_no_names_that_lead_out_of_it(gateway: Gateway) -> None:
    for name in ("..\\..\\evil", "__.._.._evil", ".._.._evil", "line\nfeed", "\udcff", "plain"):
        await gateway.put(f"/alice/d/{name}", name.encode("utf-8", "surrogateescape"))
    async with gateway.client() as alice:
        answer = await alice.get("/alice/d", params={"op": "ARCHIVE", "data": "true"})
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    names = archive.namelist()
    assert len(set(names)) == len(names) == 6
    assert not [name for name in names if "\\" in name or "\n" in name or ".." in name.split("/")]
    # none has the contents of another
    assert sorted(map(archive.read, names)) == sorted(
        [b"..\\..\\evil", b"__.._.._evil", b".._.._evil", b"line\nfeed", b"\xff", b"plain"]
    )


# -- bodies


async def test_who_is_refused_is_told_before_the_body_is_read(gateway: Gateway) -> None:
    await gateway.put("/alice/there", b"")
    for path, token, status in (
        ("/alice/x?op=CREATE&data=true", "nobody", 401),
        ("/bob/x?op=CREATE&data=true", "a", 403),
        ("/alice/there?op=CREATE&data=true", "a", 403),
        # what one may read and not write
        ("/Public/x?op=CREATE", "a", 403),
        ("/Container/alice/x?op=CREATE&data=true", "a", 403),
        ("/alice/none?op=APPEND&data=true", "a", 400),
        ("/alice/x?op=NONSENSE", "a", 400),
        ("/alice/x?op=CREATE", "a", 307),
    ):
        for expect in ("", "Expect: 100-continue\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            writer.write(
                f"PUT /webhdfs/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Length: {5 * 2**30}\r\n{expect}\r\n".encode()
            )
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(f"HTTP/1.1 {status} ".encode()), (path, head)
            if expect:  # the client is not told to go on, and has nothing on its way
                assert b"HTTP/1.1" not in await reader.read()
            writer.close()


async def test_who_sends_without_asking_still_reads_the_answer(gateway: Gateway) -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield bytes(MB)

    async with gateway.client() as alice:
        for content in (bytes(20 * MB), body()):
            answer = await alice.put("/bob/f", params={"op": "CREATE", "data": "true"}, content=content)
            assert answer.status_code == 403
        assert (await alice.put("/alice", params={"op": "MKDIRS"}, content=bytes(MB))).status_code == 200


async def test_what_nobody_wants_is_not_read_for_ever(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_module, "_THROWN_AWAY", 3 * MB)
    reader, writer = await sends(
        gateway, "PUT /webhdfs/v1/bob/f?op=CREATE&data=true HTTP/1.1\r\nContent-Length: 99999999999"
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403 ")
    with pytest.raises(ConnectionError):
        await send_much(writer, 1000 * MB)


async def test_a_client_that_hangs_up_in_the_middle_leaves_no_file(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"as it was")
    for length in ("Content-Length: 9000000", "Transfer-Encoding: chunked"):
        _, writer = await sends(gateway, f"{CREATE.replace('op=', 'overwrite=true&op=')}\r\n{length}")
        writer.write(b"400000\r\n" + bytes(3 * MB))
        await writer.drain()
        await until(lambda: len(on_disk(gateway)) == 2)
        writer.close()
        await until(lambda: on_disk(gateway) == ["alice/f"])
    assert (gateway.folder / "files" / "alice" / "f").read_bytes() == b"as it was"


async def test_what_had_come_of_an_append_stays_so_that_it_can_go_on(gateway: Gateway) -> None:
    await gateway.put("/alice/f", b"")
    _, writer = await sends(
        gateway, "POST /webhdfs/v1/alice/f?op=APPEND&data=true HTTP/1.1\r\nContent-Length: 9000000"
    )
    writer.write(bytes(3 * MB + 5))
    await writer.drain()
    writer.close()
    await until(lambda: (gateway.folder / "files" / "alice" / "f").stat().st_size == 3 * MB + 5)


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n", b"Content-Length: -1\r\n\r\n",
     b"Content-Length: 5, 6\r\n\r\nhello!", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello!!\r\n0\r\n\r\n",
     b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello",
     b"Transfer-Encoding: gzip\r\n\r\nhello",
     b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello"],
)  # fmt: skip
async def test_a_body_other_than_it_was_declared_makes_no_file_of_it(gateway: Gateway, body: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"{CREATE}\r\nHost: x\r\nAuthorization: Bearer a\r\n".encode() + body)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    if body.startswith(b"Content-Length: 5\r\n"):
        # the rest is another request, which a connection that carried a file does not take
        assert answer.startswith(b"HTTP/1.1 201 ")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"Connection: close" in answer
        assert (gateway.folder / "files" / "alice" / "f").read_bytes() == b"hello"
    else:
        await until(lambda: on_disk(gateway) == [])


async def test_a_file_may_take_longer_than_any_other_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_BODY_SECONDS", 0.2)
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        reader, writer = await sends(gateway, f"{CREATE}\r\nContent-Length: 10")
        for _ in range(10):
            writer.write(b"x")
            await asyncio.sleep(0.05)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 201 ")
        writer.close()


async def test_a_sender_that_is_silent_too_long_is_cut_off(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_module, "SILENCE", 0.2)
    reader, writer = await sends(gateway, f"{CREATE}\r\nContent-Length: 9000000")
    await send_much(writer, 2 * MB)
    with suppress(ConnectionError):
        assert await reader.read() == b""
    assert on_disk(gateway) == []


async def test_a_sender_waits_for_a_storage_that_is_slow(gateway: Gateway) -> None:
    taken, free = 0, asyncio.Event()

    async def create(_principal: object, _path: object, pieces: AsyncIterator[bytes], **_: object) -> None:
        nonlocal taken
        async for piece in pieces:
            taken += len(piece)
            await free.wait()

    gateway.service.files.create = create  # type: ignore[method-assign, assignment]
    reader, writer = await sends(gateway, f"{CREATE}\r\nContent-Length: {100 * MB}")
    sending = asyncio.create_task(send_much(writer, 100 * MB))
    await asyncio.wait([sending], timeout=0.5)
    # what the network and the gateway hold is less, and the sender stands still
    assert not sending.done()
    assert taken <= 2 * MB
    free.set()
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 201 ")
    assert taken == 100 * MB
    await sending
    writer.close()


async def test_a_slow_reader_fills_no_memory(gateway: Gateway) -> None:
    given = 0

    @asynccontextmanager
    async def open_file(*_: object) -> AsyncIterator[OpenFile]:
        async def pieces() -> AsyncIterator[bytes]:
            nonlocal given
            for _ in range(100):
                given += MB
                yield bytes(MB)

        status = await gateway.service.files.status(Principal("alice"), StoragePath(("alice", "f")))
        yield OpenFile(status, 100 * MB, pieces())

    await gateway.put("/alice/f", b"")
    gateway.service.files.open = open_file  # type: ignore[method-assign, assignment]
    _, writer = await sends(gateway, "GET /webhdfs/v1/alice/f?op=OPEN&data=true HTTP/1.1")
    before = -1
    while given != before:  # until nothing more is taken
        before = given
        await asyncio.sleep(0.3)
    # what the network holds, and little more
    assert 0 < given < 20 * MB
    writer.close()


async def test_half_open_uploads_of_one_user_stop_nobody_else(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        object.__setattr__(gateway.context, "transfers", TransferLimit(most=8, patience=0.5))
        await gateway.put("/bob/f", b"his", "b")
        writers = []
        for number in range(200):
            head = CREATE.replace("alice/f", f"alice/{number}")
            _, writer = await sends(gateway, f"{head}\r\nContent-Length: 9000000")
            writer.write(bytes(100_000))
            writers.append(writer)
        async with gateway.client("b") as bob, gateway.client() as alice:
            params = {"op": "OPEN", "data": "true"}
            assert (await bob.get("/bob/f", params=params)).content == b"his"
            await bob.put("/bob/g", params={"op": "CREATE", "data": "true"}, content=b"x")
            refused = await alice.put("/alice/f", params={"op": "CREATE", "data": "true"}, content=b"x")
            assert (refused.status_code, refused.json()["RemoteException"]["exception"]) == (
                429, "RetriableException",
            )  # fmt: skip
            # what transfers nothing is not counted
            assert (await alice.get("/alice", params={"op": "LISTSTATUS"})).status_code == 200
            for writer in writers:
                writer.close()
            for _ in range(100):
                again = await alice.put("/alice/f", params={"op": "CREATE", "data": "true"}, content=b"x")
                if again.status_code == 201:
                    break
            assert again.status_code == 201
        await until(lambda: on_disk(gateway) == ["alice/f", "bob/f", "bob/g"])


async def test_a_storage_that_fails_in_the_middle_is_said_at_once(gateway: Gateway) -> None:
    async def create(_principal: object, _path: object, pieces: AsyncIterator[bytes], **_: object) -> None:
        async for _piece in pieces:
            raise StorageError(Problem.NO_SPACE, msg("This scheduler has no storage for files."))

    gateway.service.files.create = create  # type: ignore[method-assign, assignment]
    reader, writer = await sends(gateway, f"{CREATE}\r\nContent-Length: 9000000")
    writer.write(bytes(2 * MB))
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 507 ")
    writer.close()


async def test_a_read_that_fails_in_the_middle_is_not_taken_for_whole(gateway: Gateway) -> None:
    await gateway.put("/alice/f", bytes(40 * MB))

    async def read() -> None:
        params = {"op": "OPEN", "data": "true"}
        async with gateway.client() as alice, alice.stream("GET", "/alice/f", params=params) as answer:
            async for _ in answer.aiter_bytes():
                (gateway.folder / "files" / "alice" / "f").write_bytes(b"")

    with pytest.raises(httpx.RemoteProtocolError):
        await read()


async def test_nothing_of_it_is_in_the_log(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        async with gateway.client() as alice:
            first = await alice.put("/alice/f", params={"op": "CREATE"})
            await alice.put(first.headers["Location"], content=b"x")
            await alice.get("/bob/f", params={"op": "OPEN"})
    ticket = dict(parse_qsl(urlsplit(first.headers["Location"]).query))["ticket"]
    logged = "\n".join(str(vars(record)) for record in caplog.records if record.name.startswith("pai_"))
    assert "/alice/f" in logged
    assert ticket not in logged
    assert "Bearer" not in logged
