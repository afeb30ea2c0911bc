from __future__ import annotations

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.feasibility import Feasibility, Fits, feasibility, obstacle
from pai_scheduler.cluster.quota import Bound, QuotaViolation
from pai_scheduler.cluster.resources import Demand
from tests.scheduler.cluster.harness import Harness, gpu, gpu_node, on
from tests.scheduler.making import make_demand

NEVER = "Never fits at present: "


def asked(
    harness: Harness, *gang: Demand, vc: str = "x", user: str = "alice", preemptible: bool = True
) -> Feasibility:
    """Ask what would happen to a job, and see that asking changes nothing."""
    before = harness.scheduler_state()
    found = feasibility(harness.state, user, vc, gang, preemptible=preemptible)
    assert harness.scheduler_state() == before
    return found


def waits(harness: Harness, job_id: str) -> Feasibility:
    before = harness.scheduler_state()
    found = obstacle(harness.state, job_id)
    assert harness.scheduler_state() == before
    return found


def said(found: Feasibility) -> tuple[str, str]:
    return found.fits.value, str(found.reason)


def test_what_fits_within_the_guarantee_fits_now_and_that_is_all_there_is_to_say() -> None:
    assert asked(Harness(), gpu(2)) == Feasibility(Fits.NOW)


def test_what_fits_beyond_the_guarantee_borrows() -> None:
    assert asked(Harness(), gpu(3)) == Feasibility(Fits.NOW, borrows=True)


def test_a_job_that_takes_another_type_than_is_left_of_its_guarantee_borrows() -> None:
    harness = Harness(gpu_node(gpus=2, K80=2))
    harness.hold("x0", (gpu(1, "P100"), on("a", 0)))
    harness.hold("y0", (gpu(2, "K80"), on("a", 2, 3)), vc="y")
    assert asked(harness, gpu(1)) == Feasibility(Fits.NOW, borrows=True)


def test_what_must_not_be_stopped_for_others_cannot_borrow() -> None:
    harness = Harness()
    assert asked(harness, gpu(2), preemptible=False) == Feasibility(Fits.NOW)
    never = asked(harness, gpu(3), preemptible=False)
    words = (
        "virtual cluster x has 2 × P100 of its own (50 %), of which {used} are in use, and {asked} × P100 "
        "are asked for. What other virtual clusters do not use is only for jobs that may be stopped for them."
    )
    assert asked(harness, gpu(3, "P100"), preemptible=False).violation == QuotaViolation(
        "x", Bound.GUARANTEE, "gpu:P100", 3, 0, 2
    )
    assert said(asked(harness, gpu(3, "P100"), preemptible=False)) == (
        "never",
        NEVER + words.format(used=0, asked=3),
    )
    assert said(never) == ("never", NEVER + words.format(used=0, asked=3).replace("P100", "GPU"))
    harness.hold("r", (gpu(1), on("a", 0)))
    later = asked(harness, gpu(2, "P100"), preemptible=False)
    assert said(later) == ("later", words.format(used=1, asked=2))
    assert later.violation == QuotaViolation("x", Bound.GUARANTEE, "gpu:P100", 2, 1, 2)
    assert not later.borrows


def test_the_most_that_a_virtual_cluster_may_hold_is_told_with_its_share() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 33.5, 62.5), VirtualCluster("y", 50)])
    words = (
        "virtual cluster x may hold 62 CPUs at most (62.5 %), its jobs hold {used}, "
        "and the job asks for {asked} CPUs."
    )
    assert said(asked(harness, make_demand(63))) == ("never", NEVER + words.format(used=0, asked=63))
    harness.hold("r", (make_demand(3), on("a")))
    later = asked(harness, make_demand(60))
    assert said(later) == ("later", words.format(used=3, asked=60))
    assert later.borrows
    assert later.violation == QuotaViolation("x", Bound.MAXIMUM, "cpus", 60, 3, 62)


def test_a_users_quota_is_told_with_what_the_user_holds() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100, gpus_per_user=2)])
    words = (
        "a user may hold 2 × GPU in virtual cluster x; alice holds {used}, "
        "and the job asks for {asked} × GPU."
    )
    never = asked(harness, gpu(3))
    assert said(never) == ("never", NEVER + words.format(used=0, asked=3))
    assert never.violation == QuotaViolation("x", Bound.MAXIMUM, "gpu:", 3, 0, 2, "alice")
    harness.hold("r", (gpu(1), on("a", 0)))
    assert said(asked(harness, gpu(2))) == ("later", words.format(used=1, asked=2))
    assert asked(harness, gpu(2), user="bert") == Feasibility(Fits.NOW)


def test_what_no_node_has_never_fits() -> None:
    found = asked(Harness(), gpu(5))
    assert said(found) == (
        "never",
        NEVER + "a task asks for 5 × GPU, the largest node has 4. Ask for at most 4 per task.",
    )
    assert found.violation is None


def test_limits_on_each_type_may_leave_no_arrangement_for_ever() -> None:
    harness = Harness(
        gpu_node("a", 2, K80=2), clusters=[VirtualCluster("x", 50, 50), VirtualCluster("y", 50)]
    )
    assert said(asked(harness, gpu(2))) == (
        "never",
        NEVER + "the limits of virtual cluster x leave no arrangement of its tasks.",
    )
    assert asked(harness, gpu(1), gpu(1)) == Feasibility(Fits.NOW)


def test_limits_on_each_type_may_leave_no_arrangement_now() -> None:
    harness = Harness(
        gpu_node("a", 4, K80=4), clusters=[VirtualCluster("x", 50, 50), VirtualCluster("y", 50)]
    )
    harness.hold("r", (gpu(1, "P100"), on("a", 0)), (gpu(1, "K80"), on("a", 4)))
    assert said(asked(harness, gpu(2))) == (
        "later",
        "there is room, but on other types of GPU than its virtual cluster may still hold (P100: 1, K80: 1).",
    )


def test_what_is_missing_on_the_nodes_is_told() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100)])
    harness.hold("r", (gpu(3), on("a", 0, 1, 2)))
    found = asked(harness, gpu(2))
    assert said(found) == ("later", "the job asks for 2 × GPU, 1 free (a: 1).")
    assert (found.borrows, found.violation, found.behind) == (False, None, False)


def test_what_is_free_but_kept_for_others_is_told() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100)], limit=0)
    harness.hold("r", (gpu(1), on("a", 0)))
    harness.wait("large", gpu(4))
    found = asked(harness, gpu(1))
    assert said(found) == (
        "later",
        "what it needs is free, but kept for jobs that have waited longer or come first.",
    )
    assert found.behind
    # of what is really missing, what is kept for others is no part
    assert said(asked(harness, gpu(4))) == ("later", "the job asks for 4 × GPU, 3 free (a: 3).")


def test_a_reserved_job_is_not_told_of_its_own_or_later_reservations() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100)], limit=0)
    harness.hold("r", (gpu(1), on("a", 0)))
    harness.wait("large", gpu(4))
    harness.wait("behind", gpu(3))
    assert said(waits(harness, "large")) == ("later", "the job asks for 4 × GPU, 3 free (a: 3).")
    assert waits(harness, "behind").behind


def test_a_limit_that_is_used_up_by_what_is_kept_counts_for_those_behind_only() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50, 50), VirtualCluster("y", 50)], limit=0)
    harness.hold("r", (gpu(1), on("a", 0)))
    harness.wait("large", gpu(2))
    words = (
        "virtual cluster x may hold 2 × GPU at most (50 %), its jobs hold {used}, "
        "and the job asks for {asked} × GPU."
    )
    harness.wait("behind", gpu(2, cpus=2))
    assert harness.reserved() == ["large", "behind"]
    assert said(waits(harness, "large")) == ("later", words.format(used=1, asked=2))
    assert said(asked(harness, gpu(1))) == ("later", words.format(used=2, asked=1))


def test_a_stopped_virtual_cluster_is_told_before_all_else() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 50, stopped=True)])
    assert said(asked(harness, gpu(99))) == ("later", "an administrator has stopped virtual cluster x.")


def test_a_virtual_cluster_that_is_gone_is_told() -> None:
    harness = Harness()
    harness.wait("j", gpu(1), vc="gone")
    assert said(waits(harness, "j")) == ("later", "there is no virtual cluster gone any more.")


def test_what_a_waiting_job_waits_for_is_what_is_told_to_one_that_would_come() -> None:
    harness = Harness()
    harness.hold("r", (gpu(4), on("a", 0, 1, 2, 3)))
    harness.wait("small", gpu(1), preemptible=False)
    harness.wait("large", gpu(9))
    assert waits(harness, "small") == asked(harness, gpu(1), preemptible=False)
    assert waits(harness, "large") == asked(harness, gpu(9))
    assert waits(harness, "large").fits is Fits.NEVER
