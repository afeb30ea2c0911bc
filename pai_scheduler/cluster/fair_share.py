"""Usage of a virtual cluster by user, decaying with time.

One unit is an eighth of a GPU for one ms. A task counts its GPUs, one without a GPU its cores. An account has
what was used until a moment, halved for each half-life since; what is held now is added to it when somebody
asks. So nothing has to be done as time goes by, and a restart with the same accounts finds the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp2, log, log2

from .definition import VirtualCluster
from .resources import Demand

#: A GPU counts as so many cores.
CORES_PER_GPU = 8
#: What somebody holds counts from its start as if it had been held for so long: of two users whose jobs come
#: at the same moment none gets everything.
AHEAD_MS = 10 * 60_000
#: So often the order of users follows what they use; at once when they get something or give it back.
EVERY_MS = 60_000

_HOUR_MS = 3_600_000
#: Makes every key positive.
_OFFSET = 1 << 40

#: A virtual cluster and a user.
Sharer = tuple[str, str]


@dataclass(slots=True)
class DecayedUsage:
    """Usage of a user at `as_of` (ms since the epoch), in eighths of a GPU for one ms."""

    amount: float
    as_of: int


@dataclass(frozen=True, slots=True)
class UserShare:
    """Recent usage of a user: in GPU hours, and as a part of the usage of all users (0 to 1)."""

    gpu_hours: float
    part: float


def weight(demand: Demand) -> int:
    """Return what a task counts: its GPUs, or its cores where it has none, in eighths of a GPU."""
    return CORES_PER_GPU * demand.gpus or demand.cpus


class UsageAccounting:
    """The accounts of all users of virtual clusters whose users share by what they have used."""

    def __init__(self, clusters: Iterable[VirtualCluster]) -> None:
        self._half_lives: dict[str, int] = {}
        #: what they hold now, in all virtual clusters
        self._held: Counter[Sharer] = Counter()
        self._accounts: dict[Sharer, DecayedUsage] = {}
        #: what is to be kept over a restart; None: no longer
        self._changed: dict[Sharer, DecayedUsage | None] = {}
        #: whose key may be another by now
        self._stale: dict[Sharer, None] = {}
        self._minute = 0
        self.set_clusters(clusters, 0)

    def set_clusters(self, clusters: Iterable[VirtualCluster], now: int) -> None:
        """Virtual clusters were changed: who shares no longer has no accounts, who does so now begins."""
        self._half_lives = {
            cluster.name: cluster.fair_share_hours * _HOUR_MS
            for cluster in clusters
            if cluster.fair_share_hours
        }
        for sharer in [sharer for sharer in self._accounts if sharer[0] not in self._half_lives]:
            del self._accounts[sharer]
            self._changed[sharer] = None
        self.begin(now)

    def restore(self, accounts: Mapping[Sharer, DecayedUsage]) -> None:
        """Take up the accounts that were kept; what is held is booked besides."""
        for sharer, account in accounts.items():
            if sharer[0] in self._half_lives:
                self._accounts[sharer] = account
                self._stale[sharer] = None
            else:
                self._changed[sharer] = None

    def begin(self, now: int) -> None:
        """Open an account for each who holds something and has none."""
        for sharer, held in self._held.items():
            if held and sharer[0] in self._half_lives and sharer not in self._accounts:
                self._count(sharer, 0, now)

    def book(self, sharer: Sharer, amount: int) -> None:
        """Know what somebody holds already."""
        self._held[sharer] += amount

    def took(self, sharer: Sharer, amount: int, now: int) -> None:
        """Know that somebody has got something (or, below 0, gives it back), in eighths of a GPU."""
        if sharer[0] in self._half_lives:
            self._count(sharer, amount, now)
        else:
            self._held[sharer] += amount
        if not self._held[sharer]:
            del self._held[sharer]

    def shares(self, virtual_cluster: str) -> bool:
        """Return whether the users of a virtual cluster share by what they have used."""
        return virtual_cluster in self._half_lives

    def gpu_hours(self, sharer: Sharer, now: int) -> float:
        """Return what somebody has used lately."""
        account = self._accounts.get(sharer)
        if account is None:
            return 0.0
        return self._amount(sharer, account, max(now, account.as_of)) / (CORES_PER_GPU * _HOUR_MS)

    def used_lately(self, user: str, now: int) -> dict[str, UserShare]:
        """Return what a user has used of each virtual cluster whose users share."""
        used, whole = dict.fromkeys(self._half_lives, 0.0), dict.fromkeys(self._half_lives, 0.0)
        for sharer in self._accounts:
            virtual_cluster, who = sharer
            hours = self.gpu_hours(sharer, now)
            whole[virtual_cluster] += hours
            if who == user:
                used[virtual_cluster] = hours
        return {
            name: UserShare(hours, hours / whole[name] if whole[name] else 0.0)
            for name, hours in used.items()
        }

    def user_key(self, sharer: Sharer, now: int) -> int:
        """Return a number: whose is less has used less. It stays the same while nothing is held.

        What was used is as if it had been used up to a moment: the later that is, the more it was.
        """
        account = self._accounts.get(sharer)
        if account is None:
            return 0
        # (so that it does not depend on when somebody last asked)
        held = self._held.get(sharer, 0)
        time = max(account.as_of, now - now % EVERY_MS) if held else account.as_of
        amount = self._amount(sharer, account, time) + held * AHEAD_MS
        if not amount:
            return 0
        return max(1, _OFFSET + time + int(self._half_lives[sharer[0]] * log2(amount / 1000)))

    def user_keys(self, now: int) -> Iterator[tuple[Sharer, int]]:
        """Return whose keys may have changed since this was last asked, and what they are."""
        if self._minute != now // EVERY_MS:
            self._minute = now // EVERY_MS
            self._stale.update(dict.fromkeys(sharer for sharer in self._held if sharer in self._accounts))
        stale, self._stale = self._stale, {}
        for sharer in stale:
            yield sharer, self.user_key(sharer, now)

    def take_changed(self) -> Mapping[Sharer, DecayedUsage | None]:
        """Return what is to be kept over a restart, since this was last asked; None: no longer."""
        changed, self._changed = self._changed, {}
        return changed

    def _count(self, sharer: Sharer, amount: int, now: int) -> None:
        account = self._accounts.get(sharer)
        if account is None:
            account = self._accounts[sharer] = DecayedUsage(0.0, now)
        time = max(now, account.as_of)
        account.amount, account.as_of = self._amount(sharer, account, time), time
        self._held[sharer] += amount
        self._changed[sharer] = account
        self._stale[sharer] = None

    def _amount(self, sharer: Sharer, account: DecayedUsage, time: int) -> float:
        """Return what somebody has used until a moment that is not before the account's."""
        half_life = self._half_lives[sharer[0]]
        left = exp2((account.as_of - time) / half_life)
        return account.amount * left + self._held.get(sharer, 0) * half_life / log(2) * (1 - left)
