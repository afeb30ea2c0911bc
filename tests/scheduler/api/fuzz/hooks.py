"""What schemathesis may not send to a real scheduler: commands that it made up, and waits without end."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:  # noqa: ARG001 - the hook's own
    """Let tasks do nothing, and follow only what ends."""
    body = case.body
    roles = body.get("taskRoles") if isinstance(body, dict) else None
    for role in roles if isinstance(roles, list) else ():
        if isinstance(role, dict) and isinstance(role.get("command"), str) and role["command"].strip():
            role["command"] = "true"
    path = case.path_parameters or {}
    if (case.query or {}).get("follow") in ("1", "true") and "stream" in path:
        case.path_parameters = {**path, "user": "alice", "job": "ended"}
