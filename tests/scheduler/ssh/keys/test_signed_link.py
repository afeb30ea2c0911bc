"""Links to keys: for one job, for ten minutes, and nothing of them can be changed."""

from __future__ import annotations

import pytest

from pai_scheduler.ssh.keys import JobKeys, is_good, sign_link

SIGN = JobKeys(b"secret").signature
NOW = 1_700_000_000_000


def test_a_link_is_good_for_ten_minutes() -> None:
    link = sign_link("one", NOW, SIGN)
    for later, good in ((0, True), (600_000, True), (602_000, False), (10**9, False)):
        assert is_good("one", **link, now=NOW + later, sign=SIGN) is good


@pytest.mark.parametrize(
    "change",
    [
        {"expires": "9999999999"},
        {"expires": ""},
        {"signature": ""},
        {"signature": "0" * 64},
        {"signature": "é"},
    ],
)
def test_a_changed_link_is_good_for_nothing(change: dict[str, str]) -> None:
    link = sign_link("one", NOW, SIGN) | change
    assert not is_good("one", **link, now=NOW, sign=SIGN)


def test_a_link_is_good_for_its_own_job_only() -> None:
    assert not is_good("two", **sign_link("one", NOW, SIGN), now=NOW, sign=SIGN)
    # nor can a part of one field be moved into the other
    link = sign_link("one 1", NOW, SIGN)
    assert not is_good("one", f"1 {link['expires']}", link["signature"], NOW + 10**9, SIGN)
