"""Who may log in, and with what."""

from __future__ import annotations

import pytest

from pai_scheduler.server.doctor.finding import Severity
from pai_spawner.doctor.configuration import of_logins
from tests.spawner.conftest import Configure

_SHARED = "c.JupyterHub.authenticator_class = 'shared-password'"
_DUMMY = "c.JupyterHub.authenticator_class = 'dummy'"
_OWN = "c.JupyterHub.authenticator_class = 'pam'"
_HERE, _OPEN = (
    "c.JupyterHub.bind_url = 'http://127.0.0.1:8000'",
    "c.JupyterHub.bind_url = 'http://0.0.0.0:8000'",
)
_PUBLIC = "c.JupyterHub.public_url = 'https://hub.example.org/'"
_APART = "c.JupyterHub.subdomain_host = 'https://hub.example.org'"
_ALL = "c.Authenticator.allow_all = True"


@pytest.mark.parametrize(
    ("lines", "verdicts"),
    [
        ((_SHARED, _HERE, _ALL), [Severity.NOTE]),
        ((_SHARED, _OPEN, _ALL), [Severity.WRONG, Severity.NOTE]),
        ((_DUMMY, _OPEN, _ALL, _APART), [Severity.WRONG]),
        ((_DUMMY, _HERE, _PUBLIC, _ALL), [Severity.WRONG, Severity.NOTE]),
        ((_OWN, _OPEN, _ALL, _APART), [Severity.GOOD]),
        ((_OWN, _OPEN), [Severity.GOOD, Severity.WRONG]),
        ((_OWN, "c.Authenticator.allowed_users = {'alice'}"), [Severity.GOOD]),
        ((_OWN, "c.Authenticator.admin_users = {'alice'}"), [Severity.GOOD]),
        ((_OWN, "c.PAMAuthenticator.executor_threads = 'many'"), [Severity.GOOD, Severity.WRONG]),
    ],
)
def test_a_password_that_everybody_has_is_for_this_machine_and_somebody_may_log_in(
    configure: Configure, lines: tuple[str, ...], verdicts: list[Severity]
) -> None:
    found = list(of_logins(configure(*lines)))
    assert [finding.verdict for finding in found] == verdicts
    assert all(finding.advice for finding in found if finding.verdict is Severity.WRONG)


@pytest.mark.parametrize(
    ("who", "warned"),
    [
        (_ALL, True),
        ("c.Authenticator.allowed_users = {'alice', 'bob'}", True),
        ("c.PAMAuthenticator.allowed_groups = {'lab'}", True),
        ("c.Authenticator.allowed_users = {'alice'}", False),
    ],
)
def test_several_people_on_one_host_name_are_warned_of_each_others_pages(
    configure: Configure, who: str, warned: bool
) -> None:
    said = [str(finding.text) for finding in of_logins(configure(_OWN, _OPEN, who))]
    assert any("share one host name" in text for text in said) is warned
    apart = [str(finding.text) for finding in of_logins(configure(_OWN, _OPEN, who, _APART))]
    assert not any("share one host name" in text for text in apart)
