"""The name by which one logs in at the SSH gateway: whose task is meant, and which.

    <user>+<job>+<role>-<index>   a task of a job
    <user>+<job>                  the only task of a job
    <user>+<server>               a notebook server, by its name in JupyterHub
    <user>                        the only thing of theirs that runs

No job, role or server has a `+` in its name; a user may. So one name may be read in several ways, and which
one is meant follows from what there is.
"""

from __future__ import annotations

from dataclasses import dataclass

#: between the parts
SEPARATOR = "+"


@dataclass(frozen=True, slots=True)
class LoginName:
    """One reading of a login name. `job`: a job's or a notebook server's name; empty: the only one.

    `task`: `<role>-<index>`; empty: the only one.
    """

    user: str
    job: str = ""
    task: str = ""

    def __str__(self) -> str:
        return SEPARATOR.join(part for part in (self.user, self.job, self.task) if part)


def readings(name: str) -> list[LoginName]:
    """List the ways to read a login name, the most precise one first; none of an empty user."""
    found = []
    for count in (3, 2, 1):
        parts = name.rsplit(SEPARATOR, count - 1)
        if len(parts) == count and all(parts):
            found.append(LoginName(*parts))
    return found
