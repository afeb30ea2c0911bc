"""A line of lines: the same order as one list of all jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.queue_index import Ranking

JOBS = st.lists(st.tuples(st.sampled_from(["alice", "bob", "carol"]), st.integers(-3, 0)), max_size=12)
TURNS = st.fixed_dictionaries({user: st.integers(0, 40) for user in ("alice", "bob", "carol")})


@given(jobs=JOBS, before=TURNS, turns=TURNS, gone=st.sets(st.integers(0, 11)), limit=st.integers(0, 5))
def test_it_is_the_order_of_all_jobs_by_the_present_turns_of_their_users(
    jobs: list[tuple[str, int]], before: dict[str, int], turns: dict[str, int], gone: set[int], limit: int
) -> None:
    ranking = Ranking()
    for order, (user, precedence) in enumerate(jobs):
        ranking.add(user, before[user], (precedence, order), f"j{order}")
    for user, turn in turns.items():
        ranking.shift(user, turn)
    for order, (user, precedence) in enumerate(jobs):
        if order in gone:
            ranking.remove(user, (precedence, order), f"j{order}")
    expected = sorted(
        ((precedence + turns[user], order), f"j{order}")
        for order, (user, precedence) in enumerate(jobs)
        if order not in gone
    )
    assert len(ranking) == len(expected)
    assert list(ranking) == [job_id for _, job_id in expected]
    for place, position in enumerate(expected):
        assert ranking.before(position) == place
        ids = [job_id for _, job_id in expected[place + 1 :]]
        assert ranking.after(position, None) == (place + 1, ids)
        assert ranking.after(position, limit) == (place + 1, ids[:limit])


@given(jobs=JOBS, more=JOBS)
def test_several_jobs_at_once_stand_as_one_after_the_other(
    jobs: list[tuple[str, int]], more: list[tuple[str, int]]
) -> None:
    one, other = Ranking(), Ranking()
    for order, (user, precedence) in enumerate(jobs + more):
        one.add(user, 3, (precedence, order), f"j{order}")
        if order < len(jobs):
            other.add(user, 3, (precedence, order), f"j{order}")
    for user in sorted({user for user, _ in more}):
        positions = [
            ((precedence, order), f"j{order}")
            for order, (whose, precedence) in enumerate(more, len(jobs))
            if whose == user
        ]
        other.add_many(user, 3, positions)
    assert (list(other), len(other)) == (list(one), len(one))
