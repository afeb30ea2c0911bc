"""Policies that `pai-scheduler simulate` tries one after the other, in place of the cluster file's orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import yaml

from pai_scheduler.cluster.config_fields import DefinitionError, read_mapping
from pai_scheduler.cluster.definition import ORDERS, Order, VirtualCluster, read_order
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg

#: Who came first is first.
FIFO = "fifo"
#: What a policy is that is only named, and cannot do without a number.
_USUAL = {"shorterFirst": 10, "fairShare": {"halfLifeHours": 168}}


@dataclass(frozen=True, slots=True)
class Policy:
    """An order for all virtual clusters. `name`: as it was written; `order` None: as the file has them."""

    name: str
    order: Order | None = None

    def applied(self, clusters: Iterable[VirtualCluster]) -> list[VirtualCluster]:
        """Return the virtual clusters with this order."""
        if self.order is None:
            return list(clusters)
        return [replace(cluster, **self.order._asdict()) for cluster in clusters]


def read_policy(text: str) -> Policy:
    """Read a policy: `fifo`, a field of the cluster file by its name, or with a value; StartError.

    A value is YAML as in the cluster file: `leastAttained: {gpuHours: [1, 10]}`.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        document = None
    if document == FIFO:
        return Policy(text, Order())
    if isinstance(document, str) and document in ORDERS:
        document = {document: _USUAL.get(document, {})}
    try:
        fields = read_mapping(document, "", ORDERS)
        order = read_order(fields, "")
        if order == Order():
            raise DefinitionError("", msg("It says nothing."))
    except DefinitionError as error:
        raise StartError(
            msg(
                "{policy} is no policy: {reason} Say fifo or one of {known}, also with a value as in the "
                "cluster file.",
                policy=text,
                reason=f"{error.path.lstrip('.')}: {error.message}" if error.path else error.message,
                known=", ".join(ORDERS),
            )
        ) from error
    return Policy(text, order)
