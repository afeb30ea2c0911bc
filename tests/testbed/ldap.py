"""An LDAP server of the tests' own on loopback: Debian's slapd, with TLS by an authority of its own."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import trustme

from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import CannotError, apt_install

BASE = "dc=example,dc=org"
USER_DN, GROUP_DN = f"uid={{username}},ou=people,{BASE}", f"cn={{group}},ou=groups,{BASE}"
#: the name in its certificate
HOST = "localhost"
_START_SECONDS = 30
_SETTINGS = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/authority.pem
TLSCertificateFile {folder}/certificate.pem
TLSCertificateKeyFile {folder}/key.pem
# a password comes by TLS, or is not looked at
security simple_bind=128
# (our own administrator's by a socket in a folder of ours)
localSSF 128
database mdb
suffix "{base}"
rootdn "cn=admin,{base}"
rootpw {password}
directory {folder}/data
# whoever has logged in may see who is in which group
access to attrs=userPassword by anonymous auth by * none
access to * by users read
"""


class Ldap:
    """One directory, with folders for people and groups."""

    def __init__(self) -> None:
        apt_install({"slapd": "slapd", "ldapadd": "ldap-utils"})
        program = shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/libexec")
        if program is None:
            raise CannotError("slapd was installed, but is not in /usr/sbin")
        self._program = program
        self._folder = Path(tempfile.mkdtemp(prefix="pai-ldap-"))
        self.port = free_port()
        self._password = secrets.token_hex(8)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Ldap:
        (self._folder / "data").mkdir()
        authority = trustme.CA()
        certificate = authority.issue_cert(HOST)
        authority.cert_pem.write_to_path(self.authority)
        certificate.private_key_pem.write_to_path(self._folder / "key.pem")
        certificate.cert_chain_pems[0].write_to_path(self._folder / "certificate.pem")
        settings = self._folder / "slapd.conf"
        settings.write_text(
            _SETTINGS.format(folder=self._folder, base=BASE, password=self._password), encoding="ascii"
        )
        with open(self._folder / "log", "wb") as log:
            self._process = subprocess.Popen(
                # -d: it stays in the foreground
                [
                    *(self._program, "-d", "0", "-f", settings),
                    *("-h", f"ldap://127.0.0.1:{self.port}/ {self._socket}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._begin():
            if self._process.poll() is not None or time.monotonic() > deadline:
                why = (self._folder / "log").read_text()[-500:]
                self.__exit__(None, None, None)
                raise CannotError(f"slapd does not start: {why}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        shutil.rmtree(self._folder)

    @property
    def _socket(self) -> str:
        return f"ldapi://{quote(str(self._folder / 'socket'), safe='')}"

    @property
    def authority(self) -> Path:
        """The file with the authority of its certificate."""
        return self._folder / "authority.pem"

    def add_person(self, name: str, password: str) -> None:
        """Add an account."""
        self._add(
            USER_DN.format(username=name),
            *("objectClass: inetOrgPerson", f"cn: {name}", f"sn: {name}", f"userPassword: {password}"),
        )

    def add_group(self, name: str, people: Iterable[str]) -> None:
        """Add a group with its members."""
        members = (f"member: {USER_DN.format(username=person)}" for person in people)
        self._add(GROUP_DN.format(group=name), "objectClass: groupOfNames", *members)

    def leave(self, name: str, group: str) -> None:
        """Take somebody out of a group."""
        gone = f"delete: member\nmember: {USER_DN.format(username=name)}"
        self._ask("ldapmodify", f"dn: {GROUP_DN.format(group=group)}\nchangetype: modify\n{gone}\n")

    def _begin(self) -> bool:
        try:
            self._add(BASE, "objectClass: dcObject", "objectClass: organization", "o: example")
        except subprocess.CalledProcessError:
            return False
        for folder in ("people", "groups"):
            self._add(f"ou={folder},{BASE}", "objectClass: organizationalUnit")
        return True

    def _add(self, dn: str, *attributes: str) -> None:
        self._ask("ldapadd", "\n".join((f"dn: {dn}", *attributes, "")))

    def _ask(self, program: str, ldif: str) -> None:
        subprocess.run(
            [
                *(program, "-x", "-H", self._socket),
                *("-D", f"cn=admin,{BASE}", "-w", self._password),
            ],
            input=ldif,
            text=True,
            capture_output=True,
            check=True,
        )
