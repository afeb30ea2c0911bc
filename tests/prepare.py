"""Installs the Debian packages that the tests need and fetches what is large, before `make test` runs them.

What cannot be installed here is no error yet: the tests that need it skip by name, or fail with CI=true.
"""

from __future__ import annotations

from tests.testbed.hadoop import packages, provide_hadoop
from tests.testbed.machine import CannotError, apt_install, say
from tests.testbed.web_programs import provide_tensorboard

#: A program, and the Debian package that brings it.
PROGRAMS = {
    "dockerd": "docker.io",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
    "chromium": "chromium",
    "pg_ctlcluster": "postgresql",
    "ssh": "openssh-client",
    "rsync": "rsync",
    "plink": "putty-tools",
    "puttygen": "putty-tools",
    "lftp": "lftp",
    "systemd-analyze": "systemd",
}


def main() -> None:
    """Install and fetch what is missing."""
    try:
        apt_install(PROGRAMS | packages())
        provide_hadoop()
        provide_tensorboard()
    except CannotError as error:
        say(str(error))


if __name__ == "__main__":
    main()
