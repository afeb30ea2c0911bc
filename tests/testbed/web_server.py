"""A web server with TLS on loopback: Debian's nginx with the example of hub_config, and its authority."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import time
from pathlib import Path

import httpx
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import CannotError, apt_install

EXAMPLE = Path(__file__).parents[2] / "hub_config" / "examples" / "nginx.conf"
_START_SECONDS = 30
_MAIN = """\
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/example.conf;
}}
"""


class WebServer:
    """Has the certificate of `name` and of what is below it, and passes on to `port` of this machine."""

    def __init__(self, folder: Path, name: str, port: int) -> None:
        apt_install({"nginx": "nginx-light"})
        program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
        if program is None:
            raise CannotError("nginx was installed, but is not in /usr/sbin")
        folder.mkdir()
        self._folder, self._program, self._name, self._to = folder, program, name, port
        self.port, self.plain_port = free_port(), free_port()
        self.url = f"https://{name}:{self.port}"
        self.plain_url = f"http://{name}:{self.plain_port}"
        authority = trustme.CA()
        certificate = authority.issue_cert(name, f"*.{name}")
        self.authority = folder / "authority.pem"
        authority.cert_pem.write_to_path(self.authority)
        certificate.private_key_pem.write_to_path(folder / "key.pem")
        certificate.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
        shown = x509.load_pem_x509_certificate(certificate.cert_chain_pems[0].bytes()).public_key()
        digest = hashlib.sha256(shown.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
        #: what lets Chromium take this certificate, and no other that it does not know
        self.chromium_flags = [
            f"--ignore-certificate-errors-spki-list={base64.b64encode(digest.digest()).decode()}",
            f"--host-resolver-rules=MAP {name} 127.0.0.1, MAP *.{name} 127.0.0.1",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        (self._folder / "example.conf").write_text(self._example())
        main = self._folder / "nginx.conf"
        main.write_text(_MAIN.format(folder=self._folder))
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                [self._program, "-p", self._folder, "-c", main, "-e", self._folder / "error.log"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.plain_port}", trust_env=False)
                return
            except httpx.TransportError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    why = (self._folder / "error.log").read_text()[-500:]
                    self.stop()
                    raise CannotError(f"nginx does not start: {why}") from None
            time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def _example(self) -> str:
        text = EXAMPLE.read_text()
        for there, here in (
            ("listen 80;", f"listen 127.0.0.1:{self.plain_port};"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            ("/etc/ssl/hub.example.org.pem", str(self._folder / "certificate.pem")),
            ("/etc/ssl/private/hub.example.org.key", str(self._folder / "key.pem")),
            ("http://127.0.0.1:8000", f"http://127.0.0.1:{self._to}"),
            ("https://$host$", f"https://$host:{self.port}$"),
        ):
            assert there in text, there
            text = text.replace(there, here)
        return re.sub(r"hub\.example\.org", self._name, text)
