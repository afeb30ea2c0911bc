"""SSH clients as people have them."""

from __future__ import annotations

import pytest

from tests.testbed.fixtures import provide
from tests.testbed.machine import apt_install

#: Clients that nobody here wrote.
PROGRAMS = {
    "ssh": "openssh-client",
    "rsync": "rsync",
    "plink": "putty-tools",
    "psftp": "putty-tools",
    "puttygen": "putty-tools",
    "lftp": "lftp",
}


@pytest.fixture(scope="session")
def ssh_clients() -> None:
    """Have the clients on this machine."""
    provide(lambda: apt_install(PROGRAMS))
