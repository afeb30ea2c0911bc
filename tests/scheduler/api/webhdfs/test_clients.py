"""The clients that people have use our WebHDFS as Hadoop's: the `hdfs` library, its program, curl, wget."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import fsspec
import hdfs
import pytest
import requests

from pai_scheduler.principal import Principal
from pai_scheduler.service.credentials import JobTokens
from pai_scheduler.storage.folder.storage import FolderStorage
from tests.scheduler.api.gateway import Gateway, open_gateway, program, run
from tests.scheduler.making import make_config, make_role

ALICE = Principal("alice")


def make_tree(folder: Path) -> Path:
    """Make some files to send."""
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "deep" / "数据 1.txt").write_bytes(b"0123456789" * 50_000)
    (folder / "deep" / "er" / "100%=a+b&c.bin").write_bytes(os.urandom(2_500_000))
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def netrc(gateway: Gateway, tmp_path: Path) -> dict[str, str]:
    """Return the variables by which programs find alice's token, as tasks have them."""
    path = tmp_path / "netrc"
    path.write_text("machine 127.0.0.1 login alice password a\n")
    path.chmod(0o600)
    config = tmp_path / "hdfscli.cfg"
    config.write_text(
        f"[global]\ndefault.alias = pai\n[pai.alias]\nurl = {gateway.url}\nuser = alice\nroot = /alice\n"
    )
    return {"NETRC": str(path), "HDFSCLI_CONFIG": str(config), "PAI_DEFAULT_FS_URI": gateway.url}


# -- the library (over an HDFS too where it asks about files)


async def test_a_folder_is_uploaded_and_downloaded_as_it_was(any_gateway: Gateway, tmp_path: Path) -> None:
    client, local = any_gateway.library(), make_tree(tmp_path / "local")

    def use() -> None:
        assert client.upload("/alice/data", str(local), n_threads=3) == "/alice/data"
        with pytest.raises(hdfs.HdfsError, match="already exists"):
            client.upload("/alice/data/train.py", str(local / "train.py"))
        # again, over what is there: into a temporary folder, which then takes its place
        client.upload("/alice", str(local), overwrite=True)
        (tmp_path / "local" / "train.py").write_text("print('again')\n")
        client.upload("/alice/local/train.py", str(local / "train.py"), overwrite=True)
        client.download("/alice/local", str(tmp_path / "back"), n_threads=3)
        assert sorted(client.list("/alice")) == ["data", "local"]

    await asyncio.to_thread(use)
    assert tree(tmp_path / "back") == tree(local)


async def test_files_are_written_on_and_read_in_parts(gateway: Gateway) -> None:
    client = gateway.library(root="/alice")

    def use() -> None:
        with client.write("notes/行.txt", encoding="utf-8") as writer:
            writer.write("一\n")
        client.write("notes/行.txt", "二\n", append=True, encoding="utf-8")
        client.write("notes/行.txt", data=(line for line in ["三\n"]), append=True, encoding="utf-8")
        with client.read("notes/行.txt", encoding="utf-8", delimiter="\n") as lines:
            assert list(lines) == ["一", "二", "三", ""]
        with client.read("notes/行.txt", offset=4, length=3) as reader:
            assert reader.read() == "二".encode()
        with client.read("notes/行.txt", chunk_size=5) as pieces:
            assert b"".join(pieces).decode() == "一\n二\n三\n"
        with pytest.raises(hdfs.HdfsError, match="already"):
            client.write("notes/行.txt", b"")
        client.write(
            "notes/行.txt", b"new", overwrite=True, permission="600", blocksize=1048576, replication=1
        )
        with client.read("notes/行.txt") as reader:
            assert reader.read() == b"new"

    await asyncio.to_thread(use)


async def test_the_library_finds_its_way_about(any_gateway: Gateway) -> None:
    client = any_gateway.library()

    def use() -> None:
        client.makedirs("/alice/a/b", permission="755")
        for name in ("part-m-00000", "part-m-00001", "other"):
            client.write(f"/alice/a/b/{name}", name.encode())
        assert client.resolve("x") == "/alice/x"
        assert list(client.walk("/alice/a")) == [
            ("/alice/a", ["b"], []),
            ("/alice/a/b", [], ["other", "part-m-00000", "part-m-00001"]),
        ]
        assert client.parts("/alice/a/b") == ["part-m-00000", "part-m-00001"]
        assert client.content("/alice/a")["fileCount"] == 3
        assert client.checksum("/alice/a/b/other")["bytes"]
        assert client.status("/alice/nothing", strict=False) is None
        assert client.content("/alice/nothing", strict=False) is None
        with pytest.raises(hdfs.HdfsError, match="does not exist"):
            client.status("/alice/nothing")
        with pytest.raises(hdfs.HdfsError, match="is not a directory"):
            client.list("/alice/a/b/other")
        client.set_permission("/alice", 777)
        client.set_times("/alice/a/b/other", modification_time=1_500_000_000_000)
        assert client.status("/alice/a/b/other")["modificationTime"] == 1_500_000_000_000
        client.set_replication("/alice/a/b/other", 1)
        client.set_owner("/alice/a/b/other", owner=client.status("/alice/a/b/other")["owner"])
        assert client.acl_status("/alice/a/b/other")["entries"] == []
        with pytest.raises(hdfs.HdfsError):
            client.set_acl("/alice/a", "user::rwx")
        with pytest.raises(hdfs.HdfsError):
            client.create_snapshot("/alice/a", "now")
        client.rename("/alice/a/b/other", "/alice/a/renamed")
        with pytest.raises(hdfs.HdfsError, match="Unable to rename"):
            client.rename("/alice/a/b/other", "/alice/a/renamed")
        with pytest.raises(hdfs.HdfsError, match="not empty"):
            client.delete("/alice/a")
        assert client.delete("/alice/a/renamed", skip_trash=False)
        assert client.content("/alice/.Trash")["fileCount"] == 1
        assert client.delete("/alice/a", recursive=True)
        assert not client.delete("/alice/a")

    await asyncio.to_thread(use)


async def test_the_library_needs_nothing_but_a_netrc_file(
    gateway: Gateway, netrc: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETRC", netrc["NETRC"])
    monkeypatch.setenv("NO_PROXY", "*")

    def use() -> None:
        client = hdfs.InsecureClient(gateway.url, user="demo", root="/alice")
        client.write("f", b"hello")
        with client.read("f") as reader:
            assert reader.read() == b"hello"

    await asyncio.to_thread(use)


async def test_a_wrong_token_is_said_to_be_one(gateway: Gateway) -> None:
    def use() -> None:
        with pytest.raises(hdfs.HdfsError, match="Check your credentials"):
            gateway.library("wrong").list("/alice")

    await asyncio.to_thread(use)


async def test_everything_is_there_under_the_hubs_prefix_too(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path / "files")
    async with open_gateway(tmp_path, storage, prefix="/services/pai/") as gateway:

        def use() -> None:
            client = gateway.library()
            client.write("/alice/f", b"hello")
            with client.read("/alice/f") as reader:
                assert reader.read() == b"hello"

        await asyncio.to_thread(use)
        async with gateway.client() as alice:
            sent = await alice.get(
                "/alice/f",
                params={"op": "OPEN"},
                headers={"X-Forwarded-Proto": "https", "Host": "hub.example"},
            )
    assert sent.headers["Location"].startswith("https://hub.example/services/pai/webhdfs/v1/alice/f?")


# -- its program


async def test_the_librarys_own_program_works(
    gateway: Gateway, netrc: dict[str, str], tmp_path: Path
) -> None:
    local = make_tree(tmp_path / "local")
    hdfscli = program("hdfscli")
    await run(hdfscli, "upload", "--silent", str(local), "data", env=netrc)
    await run(hdfscli, "upload", "-A", "-", "data/train.py", env=netrc, stdin=b"print('more')\n")
    assert "print('more')" in await run(hdfscli, "download", "data/train.py", "-", env=netrc)
    await run(hdfscli, "download", "--silent", "-t", "2", "data", str(tmp_path / "back"), env=netrc)
    (local / "train.py").write_text("print('hello')\nprint('more')\n")
    assert tree(tmp_path / "back") == tree(local)
    assert gateway.url  # it is still there


# -- curl


async def test_curl_does_as_hadoops_document_says(
    gateway: Gateway, netrc: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(3_000_000))
    base = f"{gateway.url}/webhdfs/v1/alice"
    curl = ("curl", "-sS", "--fail-with-body", "--netrc-file", netrc["NETRC"])
    # in two steps, the second one without a credential
    told = await run(*curl, "-i", "-X", "PUT", f"{base}/two?op=CREATE&user.name=alice")
    (location,) = [line[10:] for line in told.splitlines() if line.lower().startswith("location: ")]
    await run("curl", "-sS", "--fail-with-body", "-X", "PUT", "-T", str(file), location)
    # in one, whether or not it asks before it sends
    await run(*curl, "-L", "-T", str(file), f"{base}/one?op=CREATE")
    await run(*curl, "-L", "-T", str(file), "-H", "Expect: 100-continue", f"{base}/asked?op=CREATE")
    await run(*curl, "-L", "-T", str(file), "-H", "Expect:", f"{base}/unasked?op=CREATE")
    await run(*curl, "-L", "-X", "POST", "-T", str(file), f"{base}/one?op=APPEND")
    for name, times in (("two", 1), ("one", 2), ("asked", 1), ("unasked", 1)):
        await run(*curl, "-L", f"{base}/{name}?op=OPEN", "-o", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == times * file.read_bytes()
    assert '"pathSuffix":"asked"' in await run(*curl, f"{base}?op=LISTSTATUS")
    # a token of one's own at once, and the rest of a download
    bearer = ("curl", "-sS", "-H", "Authorization: Bearer a")
    (tmp_path / "back").write_bytes(file.read_bytes()[:1_000_000])
    await run(*bearer, "-C", "-", f"{base}/two?op=OPEN&data=true", "-o", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == file.read_bytes()


async def test_wget_of_an_old_client_reads_where_it_was_used_to(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path / "files")
    async with open_gateway(tmp_path, storage, openpai_compat=True) as gateway:
        await gateway.put("/alice/f", b"hello")
        url = f"{gateway.url}/webhdfs/api/v1/alice/f?op=OPEN"
        token = ("--user=alice", "--password=a", "--no-config")
        assert await run("wget", "-qO-", *token, url) == "hello"
        # what others read without a token in OpenPAI, nobody does here
        assert "SecurityException" in await run("curl", "-sSL", url)
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        assert "NoApiError" in await run("curl", "-sSL", f"{gateway.url}/webhdfs/api/v1/alice/f?op=OPEN")


# -- a job


@pytest.fixture
async def job(gateway: Gateway) -> AsyncIterator[str]:
    """Run a job of alice's; return its token."""
    config = make_config(make_role(command="sleep 1000"), name="job")
    await gateway.service.admission.submit(ALICE, "alice", config)
    job = await gateway.service.jobs.get(ALICE, "alice", "job")
    yield JobTokens.in_folder(gateway.folder).token(job.id)
    await gateway.service.jobs.stop(ALICE, "alice", "job")


async def test_a_jobs_token_opens_its_users_files_and_dies_with_the_job(gateway: Gateway, job: str) -> None:
    await gateway.put("/bob/f", b"", "b")
    await asyncio.to_thread(gateway.library(job).write, "/alice/f", b"hello")
    async with gateway.client(job) as task:
        others = await task.get("/bob/f", params={"op": "GETFILESTATUS"})
        assert others.status_code == 403
        await gateway.service.jobs.stop(ALICE, "alice", "job")
        for _ in range(1000):  # until its last task has ended
            dead = await task.get("/alice/f", params={"op": "GETFILESTATUS"})
            if dead.status_code != 200:
                break
            await asyncio.sleep(0.01)
    assert dead.status_code == 401
    assert dead.headers["WWW-Authenticate"] == 'Bearer realm="PAI", Basic realm="PAI"'


async def test_a_jobs_token_opens_nothing_else(gateway: Gateway, job: str) -> None:
    def use() -> list[int]:
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {job}"
        paths = ("jobs", "user", "user/alice", "user/alice/jobs/job", "events", "nodes", "queue")
        return [session.get(f"{gateway.url}/api/v1/{path}").status_code for path in paths]

    assert set(await asyncio.to_thread(use)) == {401}


# -- fsspec, which many libraries of data science stand on


async def test_fsspec_works_with_a_token(gateway: Gateway) -> None:
    def use() -> None:
        files = fsspec.filesystem(
            "webhdfs", host="127.0.0.1", port=gateway.port, token="a", skip_instance_cache=True
        )
        files.session.trust_env = False
        files.makedirs("/alice/deep")
        with files.open("/alice/deep/data.bin", "wb") as file:
            file.write(b"0123456789" * 1000)
        assert files.info("/alice/deep/data.bin")["size"] == 10_000
        with files.open("/alice/deep/data.bin", "rb") as file:
            file.seek(5)
            assert file.read(5) == b"56789"
        files.mv("/alice/deep/data.bin", "/alice/deep/moved.bin")
        assert [Path(name).name for name in files.ls("/alice/deep", detail=False)] == ["moved.bin"]
        assert files.cat("/alice/deep/moved.bin")[:10] == b"0123456789"
        files.rm("/alice/deep", recursive=True)
        assert not files.exists("/alice/deep")
        with pytest.raises(PermissionError):
            files.ls("/bob")

    await asyncio.to_thread(use)
