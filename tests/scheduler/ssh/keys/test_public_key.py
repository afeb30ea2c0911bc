"""Public keys as people paste them: real ones of every kind, and everything that is pasted by mistake."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from pai_scheduler.ssh.public_key import PublicKey, PublicKeyError

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKhVStbpWGTLxTFY5N5NY5yhZnKZHnWVhd5vvxzPpQPj"


def made(folder: Path, *options: str) -> str:
    file = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(file), *options], check=True)
    return (folder / "key.pub").read_text()


def blob(*fields: bytes) -> str:
    return base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in fields)).decode()


SECURITY_KEYS = [
    "sk-ssh-ed25519@openssh.com " + blob(b"sk-ssh-ed25519@openssh.com", b"x" * 32, b"ssh:"),
    "sk-ecdsa-sha2-nistp256@openssh.com "
    + blob(b"sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", b"\4" + b"x" * 64, b"ssh:"),
]


@pytest.mark.parametrize(
    "options",
    [
        ("-t", "ed25519"),
        ("-t", "rsa", "-b", "2048"),
        ("-t", "ecdsa", "-b", "256"),
        ("-t", "ecdsa", "-b", "521"),
    ],
)
def test_a_real_key_is_taken_and_has_the_fingerprint_that_openssh_says(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    line = made(tmp_path, *options, "-C", "alice on 电脑")
    key = PublicKey.parse(f"  {line}\r\n")
    said = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], capture_output=True, text=True, check=True
    )
    assert key.fingerprint == said.stdout.split()[1]
    assert key.comment == "alice on 电脑"
    assert str(key) == line.strip()
    assert key.is_key(" ".join(line.split()[:2]))
    assert not key.is_key(ED25519)


@pytest.mark.parametrize("line", SECURITY_KEYS)
def test_the_key_of_a_security_key_is_taken(line: str) -> None:
    assert PublicKey.parse(line).type == line.split()[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no public key"),
        ("   \n ", "is no public key"),
        ("hello", "is no public key"),
        ("ssh-ed448 AAAA", "is no public key"),
        (f'command="rm -rf /" {ED25519}', "Options before a key"),
        (f"no-pty,from=10.0.0.1 {ED25519}", "Options before a key"),
        (f"{ED25519}\n{ED25519}", "more than one line"),
        (f"{ED25519}\nssh-rsa AAAA", "more than one line"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----", "private key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "private key"),
        ("PuTTY-User-Key-File-3: ssh-ed25519", "private key"),
        ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----", "another form"),
        ("ssh-dss AAAAB3NzaC1kc3MAAACBAP", "DSA key is too weak"),
        ("ssh-ed25519-cert-v01@openssh.com AAAA", "certificate"),
        (ED25519[:-8], "damaged"),
        (ED25519 + "AAAA", "damaged"),
        ("ssh-ed25519", "damaged"),
        ("ssh-ed25519 !!!!", "damaged"),
        ("ssh-rsa " + ED25519.split()[1], "damaged"),
        ("ssh-ed25519 " + blob(b"ssh-ed25519", b"short"), "damaged"),
        ("sk-ssh-ed25519@openssh.com " + blob(b"sk-ssh-ed25519@openssh.com", b"x"), "damaged"),
        ("sk-ssh-ed25519@openssh.com " + blob(b"sk-ssh-ed25519@openssh.com"), "damaged"),
        ("ssh-ed25519 " + "A" * 100_000, "too long"),
        ("ssh-ed25519 \0", "damaged"),
        ("\ud800", "is no public key"),
    ],
)
def test_what_is_no_key_is_refused_with_what_to_do(text: str, said: str) -> None:
    with pytest.raises(PublicKeyError) as refused:
        PublicKey.parse(text)
    assert said in str(refused.value.message)


def test_a_short_rsa_key_is_refused(tmp_path: Path) -> None:
    line = made(tmp_path, "-t", "rsa", "-b", "1024")
    with pytest.raises(PublicKeyError, match="1024 bits is too weak: 2048 at least"):
        PublicKey.parse(line)


def test_a_comment_is_kept_short_and_plain() -> None:
    key = PublicKey.parse(f"{ED25519} \x1b[31mred {'x' * 1000}")
    assert key.comment.startswith("[31mred x")
    assert len(key.comment) == 200
