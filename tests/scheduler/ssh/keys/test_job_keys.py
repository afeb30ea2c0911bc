"""The keys of jobs: the same after a restart, another for each job, good for OpenSSH."""

from __future__ import annotations

import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pai_scheduler.ssh.keys import JobKeys


def test_keys_are_the_same_after_a_restart_and_another_for_each_job_and_purpose(tmp_path: Path) -> None:
    keys, again = JobKeys.in_folder(tmp_path), JobKeys.in_folder(tmp_path)
    assert keys.identity("one").public == again.identity("one").public
    made = [
        keys.identity("one"),
        keys.identity("two"),
        keys.host("one"),
        keys.host("two"),
        keys.gateway_host(),
    ]
    assert len({pair.public for pair in made}) == len(made)
    assert keys.gateway_token() == again.gateway_token()
    assert JobKeys(b"another").identity("one").public != keys.identity("one").public


def test_the_secret_is_its_owners_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    JobKeys.in_folder(tmp_path)
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_services_that_start_at_once_have_one_secret(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        made = list(threads.map(lambda _: JobKeys.in_folder(tmp_path).gateway_token(), range(64)))
    assert len(set(made)) == 1


def test_openssh_reads_a_key_as_ours(tmp_path: Path) -> None:
    pair = JobKeys(b"secret").identity("one")
    file = tmp_path / "key"
    file.write_bytes(pair.private)
    file.chmod(0o600)
    read = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], capture_output=True, text=True, check=True)
    assert read.stdout.split() == pair.public.split()


def test_nothing_secret_is_printed() -> None:
    pair = JobKeys(b"secret").identity("one")
    assert "PRIVATE" not in repr(pair)
