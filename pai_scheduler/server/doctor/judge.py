"""What follows from the reports of machines: what is as it should be, what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter

from pai_scheduler.engine.docker.registries import registry_of
from pai_scheduler.i18n import msg

from .finding import Finding, good, note, wrong
from .machine_report import MachineReport, NodeReport, PeerReport
from .node_probe import MOST_PEERS

#: Less than this is too little: for one more image, for the logs of a day.
_LITTLE_GB, _LITTLE_SHARE = 20.0, 0.05
#: Clocks that are apart so far make logs hard to compare; certificates bear a day.
_APART_SECONDS, _TOO_FAR_SECONDS = 2.0, 12 * 3600.0


def of_machine(report: MachineReport) -> Iterator[Finding]:
    """Judge a machine."""
    yield good(msg("Docker {version} answers.", version=report.docker))
    yield of_disk(report.disk_free_gb, report.disk_gb, "Docker")
    yield from _gpus(report)


def of_disk(free_gb: float, total_gb: float, what: str) -> Finding:
    """Judge the room on a disk (GB). `what`: who needs it."""
    text = msg(
        "{free} GB of {total} GB are free on the disk of {what}.",
        free=f"{free_gb:.0f}",
        total=f"{total_gb:.0f}",
        what=what,
    )
    if free_gb < _LITTLE_GB or free_gb < total_gb * _LITTLE_SHARE:
        return wrong(
            text,
            msg("Make room: see what images and volumes take with {command}.", command="docker system df"),
        )
    return good(text)


def of_registry(report: MachineReport, image: str) -> Finding:
    """Judge whether a node gets our image from its registry."""
    if not report.registry_error:
        return good(msg("The registry has the image {image}.", image=image))
    return note(
        msg(
            "The node has the image {image}, but not from its registry: {error}",
            image=image,
            error=report.registry_error,
        ),
        msg(
            "Push it there (make push), and see that this machine reaches {registry}; one without TLS must "
            "stand in insecure-registries in /etc/docker/daemon.json.",
            registry=registry_of(image),
        ),
    )


def of_ways(report: NodeReport, addresses: Mapping[str, str], names: Mapping[str, str]) -> Iterator[Finding]:
    """Judge the way from a node to the others. `addresses`, `names`: of every node with a probe, by id."""
    others = {address: names[node] for node, address in addresses.items() if node != report.node}
    asked = {peer.address: peer for peer in report.peers}
    if len(asked) >= MOST_PEERS:  # the others were not asked
        others = {address: name for address, name in others.items() if address in asked}
    by_name = sorted(((name, asked.get(address)) for address, name in others.items()), key=itemgetter(0))
    found = [finding for name, peer in by_name if (finding := _way(name, peer)) is not None]
    yield from found
    if by_name and not found:
        nodes = ", ".join(name for name, _ in by_name)
        yield good(msg("The networks of jobs reach {nodes}, with large packets too.", nodes=nodes))


def of_clock(ahead: float) -> Finding | None:
    """Judge by how many seconds a node's clock is ahead; None: it is as it should be."""
    apart = abs(ahead)
    if apart < _APART_SECONDS:
        return None
    text = (
        msg("Its clock is {seconds} s ahead.", seconds=f"{apart:.0f}")
        if ahead > 0
        else msg("Its clock is {seconds} s behind.", seconds=f"{apart:.0f}")
    )
    advice = msg("Have it set by the network's time: {command}", command="timedatectl set-ntp true")
    return wrong(text, advice) if apart > _TOO_FAR_SECONDS else note(text, advice)


def _way(name: str, peer: PeerReport | None) -> Finding | None:
    if peer is None:
        return wrong(
            msg("It has not heard of {node}.", node=name),
            msg("Open {ports} between the two, in both directions.", ports="7946/tcp, 7946/udp"),
        )
    if not peer.reached:
        return wrong(
            msg("The networks of jobs do not reach {node}.", node=name),
            msg("Open {ports} between the two, in both directions.", ports="4789/udp"),
        )
    if not peer.bulk:
        return wrong(
            msg("Small packets reach {node}, large ones do not.", node=name),
            msg(
                "Somewhere between the two the MTU is smaller than the machines believe: set it on both "
                "network cards to what the way carries, and start Docker again."
            ),
        )
    return None


def _gpus(report: MachineReport) -> Iterator[Finding]:
    if report.gpus:
        kinds = ", ".join(f"{report.gpus.count(kind)} × {kind}" for kind in sorted(set(report.gpus)))
        yield good(msg("Containers see {gpus}.", gpus=kinds))
        if len(report.gpus) < report.gpus_on_bus:
            yield wrong(
                msg(
                    "{count} GPUs are plugged in, and {seen} are seen.",
                    count=report.gpus_on_bus,
                    seen=len(report.gpus),
                ),
                msg(
                    "The others have failed, or the driver does not know them: see {command}.",
                    command="dmesg | grep -i nvrm",
                ),
            )
    elif not report.gpus_on_bus and not report.gpu_driver:
        yield note(msg("There is no GPU of NVIDIA's in it."))
    elif not report.gpu_driver:
        yield wrong(
            msg("{count} GPUs are plugged in, but no driver is loaded.", count=report.gpus_on_bus),
            msg("Install NVIDIA's driver, and start the machine again."),
        )
    elif not report.gpu_runtime:
        yield wrong(
            msg(
                "There is a driver ({driver}), but Docker gives no GPUs to containers.",
                driver=report.gpu_driver,
            ),
            msg(
                "Install NVIDIA's container toolkit, then: {command}",
                command="nvidia-ctk runtime configure --runtime=docker && systemctl restart docker",
            ),
        )
    else:
        yield wrong(
            msg("Containers see no GPU: {error}", error=report.gpu_error or "NVML"),
            msg("See whether the driver works ({command}), and start Docker again.", command="nvidia-smi"),
        )
