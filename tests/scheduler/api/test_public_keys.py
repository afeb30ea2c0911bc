"""Registered public keys over REST: one's own, a few, and nothing that is none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.ssh.keys import KeyPair
from tests.scheduler.conftest import checked
from tests.scheduler.service.house import House, open_house


def key(number: int) -> str:
    return KeyPair.from_seed(bytes([number]) * 32).public


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


@pytest.fixture
async def alice(house: House) -> AsyncIterator[Client]:
    async with checked(Client(house.url, "token-a")) as client:
        yield client


@pytest.fixture
async def bob(house: House) -> AsyncIterator[Client]:
    async with checked(Client(house.url, "token-b")) as client:
        yield client


@pytest.fixture
async def root(house: House) -> AsyncIterator[Client]:
    async with checked(Client(house.url, "token-root")) as client:
        yield client


async def refusal(call: object) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        await call  # type: ignore[misc]
    return refused.value.status, refused.value.code


async def test_a_key_is_registered_listed_used_and_removed(house: House, alice: Client) -> None:
    await house.begin("one")
    assert await alice.public_keys("alice") == []
    added = await alice.add_public_key("alice", f"{key(1)} laptop\n")
    assert (added["type"], added["comment"]) == ("ssh-ed25519", "laptop")
    again = await alice.add_public_key("alice", f"{key(1)} another comment")
    assert again["addedTime"] == added["addedTime"]
    await alice.add_public_key("alice", f"{key(2)} desk")
    assert [found["comment"] for found in await alice.public_keys("alice")] == ["laptop", "desk"]
    assert await house.task("alice+one", key(1), "publickey") == "one/worker-0"
    await alice.remove_public_key("alice", added["fingerprint"])
    assert (await house.login("alice+one", key(1), "publickey")).status_code == 401
    assert (await house.login("alice+one", key(2), "publickey")).status_code == 200
    assert await refusal(alice.remove_public_key("alice", added["fingerprint"])) == (404, "NoPublicKeyError")


async def test_nobody_touches_or_sees_another_users_keys_but_an_administrator(
    alice: Client, bob: Client, root: Client
) -> None:
    added = await alice.add_public_key("alice", key(1))
    forbidden = (403, "ForbiddenUserError")
    assert await refusal(bob.public_keys("alice")) == forbidden
    assert await refusal(bob.add_public_key("alice", key(2))) == forbidden
    assert await refusal(bob.remove_public_key("alice", added["fingerprint"])) == forbidden
    assert len(await root.public_keys("alice")) == 1
    await root.remove_public_key("alice", added["fingerprint"])
    assert await alice.public_keys("alice") == []


async def test_two_users_may_have_the_same_key(alice: Client, bob: Client) -> None:
    await alice.add_public_key("alice", key(1))
    await bob.add_public_key("bob", key(1))
    await alice.remove_public_key("alice", (await alice.public_keys("alice"))[0]["fingerprint"])
    assert len(await bob.public_keys("bob")) == 1


@pytest.mark.parametrize(
    "line",
    ["", "hello", f'command="sh" {key(1)}', f"{key(1)}\n{key(2)}", "-----BEGIN OPENSSH PRIVATE KEY-----\nx"],
)
async def test_what_is_no_public_key_is_refused_and_not_kept(alice: Client, line: str) -> None:
    assert await refusal(alice.add_public_key("alice", line)) == (400, "InvalidParametersError")
    assert await alice.public_keys("alice") == []


async def test_fifty_public_keys_are_allowed(alice: Client) -> None:
    for number in range(50):
        await alice.add_public_key("alice", key(number))
    assert await refusal(alice.add_public_key("alice", key(50))) == (429, "TooManyKeysError")
    # one that is there is no further one
    await alice.add_public_key("alice", key(49))


async def test_keys_outlive_a_restart(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house, Client(house.url, "token-a") as alice:
        await alice.add_public_key("alice", key(1))
    async with open_house(tmp_path) as house, Client(house.url, "token-a") as alice:
        assert len(await alice.public_keys("alice")) == 1


async def test_a_body_without_a_key_is_refused(house: House) -> None:
    async with house.client() as client:
        for body in ({}, {"key": 1}, {"key": ["x"]}):
            assert (await client.post("/user/alice/ssh-keys", json=body)).status_code == 400
