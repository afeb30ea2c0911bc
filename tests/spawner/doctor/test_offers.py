"""What people are offered: profiles, rules for sessions, and groups that are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from jupyterhub import orm

from pai_scheduler.server.doctor.finding import Severity
from pai_spawner.doctor.offers import of_offers
from tests.spawner.conftest import Configure

_MANAGED = "c.Authenticator.manage_groups = True"
_PROFILES = """
c.PAISpawner.images = {'PAI': 'pai/notebook'}
c.PAISpawner.profiles = [
    {'display_name': 'Train', 'groups': ['vision'], 'defaults': {'run_minutes': 600}}
]
"""
_SESSIONS = "c.PAISpawner.sessions_file = 'sessions.yaml'"


def findings(configure: Configure, *lines: str, **environ: str) -> list[tuple[Severity, str]]:
    return [(found.verdict, str(found.text)) for found in of_offers(configure(*lines, **environ))]


def test_profiles_that_are_wrong_are_named(configure: Configure) -> None:
    [(verdict, text)] = findings(configure, "c.PAISpawner.profiles = [{'display_nam': 'Train'}]")
    assert verdict is Severity.WRONG
    assert "c.PAISpawner.profiles[0]" in text


@pytest.mark.parametrize(
    ("rules", "verdict", "what"),
    [
        ("{idleAfter: 3h, warnBefore: 15m}", None, ""),
        ("{idleAfter: 15m, warnBefore: 15m}", Severity.WRONG, "warned all the time"),
        ("{idleAfter: 10m}", Severity.WRONG, "warned all the time"),
        ("{idleAfter: 9h, lifetime: 8h}", Severity.NOTE, "never comes before"),
        ("{lifetime: 8h, extendTimes: 2}", Severity.NOTE, "without extendBy"),
        ("{lifetime: 8h}, {when: {gpus: true}, idleAfter: 9h}", Severity.NOTE, "Rule 2"),
        ("{idleAfter: soon}", Severity.WRONG, "idleAfter"),
    ],
)
def test_limits_of_sessions_fit_together(
    configure: Configure, tmp_path: Path, rules: str, verdict: Severity | None, what: str
) -> None:
    (tmp_path / "sessions.yaml").write_text(f"rules: [{rules}]\n")
    found = findings(configure, "c.PAISpawner.sessions_file = 'sessions.yaml'")
    odd = [finding for finding in found if finding[0] is not Severity.GOOD]
    assert [verdict for verdict, _ in odd] == ([verdict] if verdict else [])
    assert all(what in text for _, text in odd)


def test_a_profile_that_offers_more_time_than_sessions_have_is_noted(
    configure: Configure, tmp_path: Path
) -> None:
    (tmp_path / "sessions.yaml").write_text("rules: [{lifetime: 8h}]\n")
    lines = (
        _PROFILES,
        _SESSIONS,
        "c.JupyterHub.load_groups = {'vision': {}}",
    )
    noted = [text for verdict, text in findings(configure, *lines) if verdict is Severity.NOTE]
    assert noted == ["The profile Train offers 600 minutes, but every session ends after 8h."]


def test_groups_that_are_nowhere_are_wrong_unless_logins_bring_them(
    configure: Configure, tmp_path: Path
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("virtualClusters: {speech: {capacity: 5, groups: [speech]}}\n")
    (tmp_path / "sessions.yaml").write_text("rules: [{when: {groups: [students]}, lifetime: 8h}]\n")
    lines = (_PROFILES, _SESSIONS)
    found = findings(configure, *lines, PAI_CLUSTER=str(cluster))
    wrong = [text for verdict, text in found if verdict is Severity.WRONG]
    assert wrong == [
        "There is no group speech in the Hub, but in the virtual cluster speech.",
        "There is no group students in the Hub, but in the sessions file.",
        "There is no group vision in the Hub, but in the profile Train.",
    ]
    found = findings(configure, *lines, _MANAGED, PAI_CLUSTER=str(cluster))
    assert Severity.WRONG not in [verdict for verdict, _ in found]

    session = orm.new_session_factory(f"sqlite:///{tmp_path / 'jupyterhub.sqlite'}")()
    session.add_all(orm.Group(name=name) for name in ("speech", "students", "vision"))
    session.commit()
    session.close()
    found = findings(configure, *lines, PAI_CLUSTER=str(cluster))
    assert [text for verdict, text in found if verdict is not Severity.GOOD] == []
    assert "speech, students, vision" in found[-1][1]
