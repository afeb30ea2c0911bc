"""Address of the Hub's service `pai-sessions`, for this notebook server."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote


def session_address(environ: Mapping[str, str]) -> str:
    """Return the address; empty where nobody watches over this server."""
    service, user = environ.get("PAI_SESSIONS_URL", ""), environ.get("JUPYTERHUB_USER", "")
    if not service or not user:
        return ""
    server = environ.get("JUPYTERHUB_SERVER_NAME", "")
    place = f"servers/{quote(server, safe='')}" if server else "server"
    return f"{service.rstrip('/')}/api/users/{quote(user, safe='')}/{place}"
