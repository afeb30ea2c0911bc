"""Who is connected and has not logged in: so many, and who makes room."""

from __future__ import annotations

from pai_scheduler.ssh.gateway.server import PendingClients


class Caller:
    def __init__(self, failures: int = 0, *, tried: bool = False, proved: bool = False) -> None:
        self.failures, self.tried, self.proved = failures, tried, proved
        self.cut_off = False

    def abort(self) -> None:
        self.cut_off = True


def test_a_refused_client_makes_room_for_a_new_one() -> None:
    room = PendingClients(most_of_a_place=3)
    silent, refused, trying, newcomer = Caller(), Caller(2, tried=True), Caller(tried=True), Caller()
    for caller in (silent, trying, refused):
        room.come(caller, "10.0.0.1")
    room.come(newcomer, "10.0.0.1")
    assert [caller.cut_off for caller in (silent, refused, trying, newcomer)] == [False, True, False, False]


def test_silent_clients_are_cut_off_before_those_that_try_and_the_oldest_first() -> None:
    room = PendingClients(most_of_a_place=3)
    trying, silent, younger = Caller(tried=True), Caller(), Caller()
    for caller in (trying, silent, younger):
        room.come(caller, "10.0.0.1")
    room.come(Caller(), "10.0.0.1")
    assert [caller.cut_off for caller in (trying, silent, younger)] == [False, True, False]


def test_the_fullest_place_makes_room_for_others() -> None:
    room = PendingClients(most_of_a_place=10, most=5)
    crowd = [Caller() for _ in range(4)]
    alone = Caller()
    for caller in crowd:
        room.come(caller, "10.0.0.1")
    room.come(alone, "10.0.0.2")
    room.come(Caller(), "10.0.0.3")
    assert [caller.cut_off for caller in crowd] == [True, False, False, False]
    assert not alone.cut_off
    assert len(room) == 5


def test_a_client_that_leaves_makes_room() -> None:
    room = PendingClients(most_of_a_place=1)
    first, second = Caller(), Caller()
    room.come(first, "10.0.0.1")
    room.leave(first)
    room.leave(first)
    room.come(second, "10.0.0.1")
    assert not first.cut_off
    assert len(room) == 1


def test_a_client_with_a_right_token_is_not_cut_off_for_guessers() -> None:
    room = PendingClients(most_of_a_place=2)
    right, guessing = Caller(1, tried=True, proved=True), Caller(tried=True)
    room.come(right, "10.0.0.1")
    room.come(guessing, "10.0.0.1")
    for _ in range(100):
        room.come(Caller(tried=True), "10.0.0.1")
    assert guessing.cut_off
    assert not right.cut_off
