"""Where a notebook server asks about itself."""

from __future__ import annotations

import pytest

from pai_labextension.session.address import session_address

SERVICE = "http://hub/services/pai-sessions"


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({"PAI_SESSIONS_URL": SERVICE, "JUPYTERHUB_USER": "alice"}, f"{SERVICE}/api/users/alice/server"),
        (
            {"PAI_SESSIONS_URL": SERVICE + "/", "JUPYTERHUB_USER": "a/b@c", "JUPYTERHUB_SERVER_NAME": "big"},
            f"{SERVICE}/api/users/a%2Fb%40c/servers/big",
        ),
        ({"PAI_SESSIONS_URL": SERVICE}, ""),
        ({"JUPYTERHUB_USER": "alice"}, ""),
    ],
)
def test_the_address_is_that_of_this_server(environ: dict[str, str], address: str) -> None:
    assert session_address(environ) == address
