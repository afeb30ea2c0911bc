"""Session tokens: read by the service that sealed them, by nobody else, and not when anything was changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.login import SessionToken

SIGN = JobKeys(b"secret").signature
ALICE = SessionToken("alice+one", "alice", "job", 1, job="abc")


@given(st.text(), st.text(), st.integers())
def test_a_session_token_is_read_as_it_was_sealed(login: str, user: str, issued: int) -> None:
    session_token = SessionToken(login, user, "token", issued, admin=True)
    assert SessionToken.opened(session_token.sealed(SIGN), SIGN) == session_token


@given(st.data())
def test_no_character_of_it_can_be_changed(data: st.DataObject) -> None:
    sealed = ALICE.sealed(SIGN)
    place = data.draw(st.integers(0, len(sealed) - 1))
    letter = data.draw(st.characters().filter(lambda letter: letter != sealed[place]))
    assert SessionToken.opened(sealed[:place] + letter + sealed[place + 1 :], SIGN) is None


def test_another_secret_makes_no_session_token_of_ours() -> None:
    assert SessionToken.opened(ALICE.sealed(JobKeys(b"other").signature), SIGN) is None


def test_what_was_signed_for_another_purpose_is_no_session_token() -> None:
    encoded = ALICE.sealed(SIGN).partition(".")[0]
    assert SessionToken.opened(f"{encoded}.{SIGN(encoded)}", SIGN) is None


def test_two_who_log_in_alike_have_two_session_tokens() -> None:
    again = SessionToken("alice+one", "alice", "job", 1, job="abc")
    assert again.sealed(SIGN) != ALICE.sealed(SIGN)


def test_how_it_was_proved_is_said() -> None:
    assert str(ALICE.by) == "the job's key"
    assert str(SessionToken("a", "a", "key", 1, key="SHA256:x").by) == "key SHA256:x"
    assert str(SessionToken("a", "a", "token", 1).by) == "token"
