from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pai_scheduler.cluster.allocations import Holdings
from pai_scheduler.cluster.preemption import JobHolding
from tests.testbed.properties import examples

CLUSTERS = ("x", "y")


class RandomHoldings(RuleBasedStateMachine):
    """Jobs get what they hold, are stopped, are expected to end, and end."""

    def __init__(self) -> None:
        super().__init__()
        self.holdings = Holdings()
        self.known: list[JobHolding] = []
        self.stopped: list[JobHolding] = []
        self.came = 0

    @rule(cluster=st.sampled_from(CLUSTERS), preemptible=st.booleans(), ending=st.booleans())
    def add(self, cluster: str, preemptible: bool, ending: bool) -> None:
        self.came += 1
        since = self.came // 3  # (some at the same moment)
        holding = JobHolding(f"j{self.came}", "alice", cluster, preemptible, since, ending=ending)
        self.holdings.add(holding)
        self.known.append(holding)
        if ending:
            self.stopped.append(holding)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.known:
            holding = data.draw(st.sampled_from(self.known))
            self.holdings.remove(holding.job_id)
            self.known.remove(holding)
            if holding in self.stopped:
                self.stopped.remove(holding)

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if self.known:
            holding = data.draw(st.sampled_from(self.known))
            self.holdings.end(holding)
            if holding not in self.stopped:
                self.stopped.append(holding)

    @rule(data=st.data(), end=st.sampled_from([None, 0, 1, 2]))
    def expect(self, data: st.DataObject, end: int | None) -> None:
        if self.known:
            self.holdings.expect(data.draw(st.sampled_from(self.known)), end)

    @invariant()
    def all_are_known_by_job_and_by_virtual_cluster(self) -> None:
        assert list(self.holdings.values()) == self.known
        assert len(self.holdings) == len(self.known)
        for cluster in CLUSTERS:
            of_cluster = [holding for holding in self.known if holding.virtual_cluster == cluster]
            assert list(self.holdings.of_cluster(cluster)) == of_cluster

    @invariant()
    def those_being_stopped_are_known_in_the_order_in_which_that_began(self) -> None:
        assert list(self.holdings.ending) == self.stopped

    @invariant()
    def the_order_of_ends_is_that_of_sorting(self) -> None:
        def order(holding: JobHolding) -> tuple[bool, bool, float, int]:
            end = float("inf") if holding.expected_end is None else holding.expected_end
            return not holding.ending, not holding.preemptible, end, holding.since

        expected = sorted(self.known, key=order)
        assert list(self.holdings.by_expected_end()) == expected
        assert self.holdings.by_expected_end()[1:3] == expected[1:3]


TestRandomHoldings = RandomHoldings.TestCase
TestRandomHoldings.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
