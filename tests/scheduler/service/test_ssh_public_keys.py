"""Registered public keys: whose they are, and who may see and change them."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.ssh.keys import KeyPair
from tests.scheduler.service.house import ALICE, ROOT, House

BOB = Principal("bob")
KEY = KeyPair.from_seed(b"k" * 32).public


async def status(call: Awaitable[object]) -> int:
    """Return the status with which a call is refused."""
    with pytest.raises(RequestError) as caught:
        await call
    return caught.value.status


async def test_a_key_is_its_users_alone(house: House) -> None:
    keys = house.service.ssh_authorization.public_keys
    key, _ = await keys.add(ALICE, "alice", KEY)
    assert await keys.has("alice", key.fingerprint)
    assert not await keys.has("bob", key.fingerprint)
    assert await keys.list(BOB, "bob") == []


async def test_only_the_user_and_administrators_see_and_change_keys(house: House) -> None:
    keys = house.service.ssh_authorization.public_keys
    key, added = await keys.add(ROOT, "alice", KEY)
    assert await status(keys.list(BOB, "alice")) == 403
    assert await status(keys.add(BOB, "alice", KEY)) == 403
    assert await status(keys.remove(BOB, "alice", key.fingerprint)) == 403
    assert await keys.list(ALICE, "alice") == [(key, added)]
    await keys.remove(ROOT, "alice", key.fingerprint)
    assert await status(keys.remove(ALICE, "alice", key.fingerprint)) == 404
