"""Which connections may be forwarded: to the task and the tasks of its job, by the names that they have."""

from __future__ import annotations

from collections.abc import Sequence

from asyncssh.packet import PacketDecodeError, SSHPacket, String, UInt32

_MOST_OF_PORT = 65535
#: how a listener in the task is asked for, whatever the client said: nobody else is to reach it
_LOOPBACK = b"localhost"


class NotForwardedError(Exception):
    """This is not forwarded; the text says why, for the client and the log."""


def destination(details: bytes) -> tuple[str, int]:
    """Read to which host and port a client wants a connection (`direct-tcpip`, RFC 4254, 7.2)."""
    try:
        packet = SSHPacket(details)
        host, port = packet.get_string().decode(), packet.get_uint32()
    except (PacketDecodeError, UnicodeDecodeError):
        raise NotForwardedError("the address is not one") from None
    if not 0 < port <= _MOST_OF_PORT:
        raise NotForwardedError(f"{port} is no port")
    return host, port


def check(host: str, allowed: Sequence[str]) -> None:
    """Refuse every host but those that are named, letter by letter: an address has many spellings."""
    if host.lower() not in {name.lower() for name in allowed}:
        shown = ascii(host)[1:-1][:100]
        raise NotForwardedError(f"connections are forwarded to the task and its job only, not to {shown}")


def unix_path(details: bytes) -> str:
    """Read which socket file a client wants (`direct-streamlocal@openssh.com`)."""
    try:
        return SSHPacket(details).get_string().decode()
    except (PacketDecodeError, UnicodeDecodeError):
        raise NotForwardedError("the path is not one") from None


class Listeners:
    """What the task listens to for a client (`-R`): on its loopback only, whatever the client named."""

    def __init__(self) -> None:
        self._hosts: dict[int, bytes] = {}
        self._paths: set[str] = set()

    @staticmethod
    def wanted(details: bytes) -> tuple[bytes, int]:
        """Read the host and port of a `tcpip-forward`, or of its end."""
        try:
            packet = SSHPacket(details)
            host, port = packet.get_string(), packet.get_uint32()
        except PacketDecodeError:
            raise NotForwardedError("the address is not one") from None
        if port > _MOST_OF_PORT:
            raise NotForwardedError(f"{port} is no port")
        return host, port

    @staticmethod
    def asked(port: int) -> bytes:
        """Give what the task's server is asked for."""
        return String(_LOOPBACK) + UInt32(port)

    def add(self, host: bytes, port: int) -> None:
        """Remember what the client calls the host on which that port is listened to."""
        self._hosts[port] = host

    def remove(self, port: int) -> None:
        """Forget it again."""
        self._hosts.pop(port, None)

    def add_path(self, path: str) -> None:
        """Remember a socket file."""
        self._paths.add(path)

    def remove_path(self, path: str) -> None:
        """Forget it again."""
        self._paths.discard(path)

    def connected(self, details: bytes) -> bytes:
        """Give a `forwarded-tcpip` as the client expects it; NotForwardedError: it asked for no such port."""
        packet = SSHPacket(details)
        try:
            packet.get_string()
            port = packet.get_uint32()
        except PacketDecodeError:
            raise NotForwardedError("the address is not one") from None
        if port not in self._hosts:
            raise NotForwardedError("nobody asked for that port")
        return String(self._hosts[port]) + UInt32(port) + packet.get_remaining_payload()

    def connected_path(self, details: bytes) -> bytes:
        """Check a `forwarded-streamlocal@openssh.com` in the same way."""
        try:
            known = unix_path(details) in self._paths
        except NotForwardedError:
            known = False
        if not known:
            raise NotForwardedError("nobody asked for that socket")
        return details
