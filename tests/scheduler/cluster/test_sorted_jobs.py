"""A line of lines: the same order as one list of all jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.queue_index import SortedJobs
from pai_scheduler.cluster.sort_key import SortKey

JOBS = st.lists(st.tuples(st.sampled_from(["alice", "bob", "carol"]), st.integers(-3, 0)), max_size=12)
USER_KEYS = st.fixed_dictionaries({user: st.integers(0, 40) for user in ("alice", "bob", "carol")})


@given(
    jobs=JOBS,
    before=USER_KEYS,
    user_keys=USER_KEYS,
    gone=st.sets(st.integers(0, 11)),
    limit=st.integers(0, 5),
)
def test_it_is_the_order_of_all_jobs_by_the_present_keys_of_their_users(
    jobs: list[tuple[str, int]], before: dict[str, int], user_keys: dict[str, int], gone: set[int], limit: int
) -> None:
    sorted_jobs = SortedJobs()
    for order, (user, priority) in enumerate(jobs):
        sorted_jobs.add(user, before[user], SortKey(priority, 0, order), f"j{order}")
    for user, user_key in user_keys.items():
        sorted_jobs.set_user_key(user, user_key)
    for order, (user, priority) in enumerate(jobs):
        if order in gone:
            sorted_jobs.remove(user, SortKey(priority, 0, order), f"j{order}")
    expected = sorted(
        (SortKey(priority, 0, order).of_user(user_keys[user]), f"j{order}")
        for order, (user, priority) in enumerate(jobs)
        if order not in gone
    )
    assert len(sorted_jobs) == len(expected)
    assert list(sorted_jobs) == [job_id for _, job_id in expected]
    for place, position in enumerate(expected):
        assert sorted_jobs.before(position) == place
        ids = [job_id for _, job_id in expected[place + 1 :]]
        assert sorted_jobs.after(position, None) == (place + 1, ids)
        assert sorted_jobs.after(position, limit) == (place + 1, ids[:limit])


@given(jobs=JOBS, more=JOBS)
def test_several_jobs_at_once_stand_as_one_after_the_other(
    jobs: list[tuple[str, int]], more: list[tuple[str, int]]
) -> None:
    one, other = SortedJobs(), SortedJobs()
    for order, (user, priority) in enumerate(jobs + more):
        one.add(user, 3, SortKey(priority, 0, order), f"j{order}")
        if order < len(jobs):
            other.add(user, 3, SortKey(priority, 0, order), f"j{order}")
    for user in sorted({user for user, _ in more}):
        added = [
            (SortKey(priority, 0, order), f"j{order}")
            for order, (whose, priority) in enumerate(more, len(jobs))
            if whose == user
        ]
        other.add_many(user, 3, added)
    assert (list(other), len(other)) == (list(one), len(one))
