"""What the Hub keeps: the secret of its cookies, and its database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from jupyterhub import orm

from pai_scheduler.server.doctor.finding import Finding, Severity
from pai_spawner.doctor.configuration import of_kept_files
from tests.spawner.conftest import Configure
from tests.testbed.postgres import Postgres


def said(finding: Finding) -> str:
    return str(finding.text)


def test_before_the_first_start_nothing_is_wrong_or_made(configure: Configure, tmp_path: Path) -> None:
    found = list(of_kept_files(configure()))
    assert [finding.verdict for finding in found] == [Severity.NOTE, Severity.NOTE]
    assert [path.name for path in tmp_path.iterdir()] == ["configuration.py"]


@pytest.mark.parametrize(
    ("mode", "secret", "verdict"),
    [
        (0o600, "ab" * 32, Severity.GOOD),
        (0o640, "ab" * 32, Severity.WRONG),
        (0o600, "", Severity.WRONG),
    ],
)
def test_the_secret_of_cookies_is_its_owners(
    configure: Configure, tmp_path: Path, mode: int, secret: str, verdict: Severity
) -> None:
    file = tmp_path / "jupyterhub_cookie_secret"
    file.write_text(secret)
    file.chmod(mode)
    assert next(iter(of_kept_files(configure()))).verdict is verdict


def test_a_secret_in_the_environment_is_good(configure: Configure) -> None:
    assert next(iter(of_kept_files(configure(JPY_COOKIE_SECRET="ab" * 32)))).verdict is Severity.GOOD


def test_a_database_of_another_version_is_named_and_left_alone(configure: Configure, tmp_path: Path) -> None:
    file = tmp_path / "jupyterhub.sqlite"
    orm.new_session_factory(f"sqlite:///{file}")
    *_, now = of_kept_files(configure())
    assert now.verdict is Severity.GOOD, said(now)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE alembic_version SET version_num = 'af4cbdb2d13c'")
    *_, older = of_kept_files(configure())
    assert older.verdict is Severity.WRONG
    assert "af4cbdb2d13c" in said(older)
    assert "upgrade-db" in str(older.advice)
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [("af4cbdb2d13c",)]


def test_a_postgresql_is_asked_and_its_password_not_shown(configure: Configure, postgres: Postgres) -> None:
    url = postgres.new_database()
    place = url.replace("postgresql:", "postgresql+psycopg:")
    *_, empty = of_kept_files(configure(f"c.JupyterHub.db_url = {place!r}"))
    assert empty.verdict is Severity.NOTE, said(empty)
    postgres.drop(url)
    *_, gone = of_kept_files(configure(f"c.JupyterHub.db_url = {place!r}"))
    assert gone.verdict is Severity.WRONG
    assert postgres.password not in said(gone)
