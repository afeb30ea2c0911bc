"""The engine for one Docker host: every task a container, every gang a network of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import aiodocker
import aiohttp
from aiodocker.containers import DockerContainer
from aiodocker.volumes import DockerVolume

from pai_scheduler.cluster.node import DiskSpace, Node
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.data_folder.durable_file import write_durably
from pai_scheduler.engine.hardware import disk_space
from pai_scheduler.engine.protocol import EngineError, Gang, Launch, SshEndpoint, Usage
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .client import DaemonUnreachableError, DockerApi
from .containers import LABEL_INSTANCE, STORAGE_HOST, ContainerCreator, network_name
from .context import ContainerEngine, EngineContext
from .debug_hold import Holds
from .images import Images
from .log_files import DockerFiles, FileNews
from .loopback_proxy import LoopbackProxy, open_proxy
from .network import GangNetworks, build_walls
from .network_pool import SpareNetworks
from .registries import RegistryCheck
from .runtime import Runtime
from .settings import DockerSettings
from .ssh import ContainerSshServers
from .task import DockerTask
from .usage import UsageMeter, containers_root, limits_storage, node_of
from .volumes import PROBE, ContainerDisks, cannot_limit

START_SECONDS = 60.0
_RECONNECT_SECONDS = 0.5
#: How long the daemon may be away (a restart) before the node counts as lost.
AWAY_SECONDS = 5.0
#: How often the daemon is asked whether it still answers: one that hangs breaks off nothing.
PULSE_SECONDS = 10.0
#: How long after a break to look for what a call that was given up has made all the same.
SWEEP_SECONDS = 10.0
#: How long the first gang waits for the walls between networks.
_WALLS_SECONDS = 20.0
#: how many networks a machine has in advance: so many jobs of one task may be submitted at once
SPARE_NETWORKS = 3
#: how many that nobody has it keeps: as many small jobs as have ended start without waiting for theirs
KEPT_NETWORKS = 32

_log = logging.getLogger(__name__)


class DockerEngine(ContainerEngine):
    """Runs tasks as containers of one Docker host.

    `data_dir` keeps logs and what must survive this process. `on_output` is called when a task's log has
    grown.
    """

    name = "docker"
    shares_host_ports = False
    one_machine = True
    own_ssh_server = False

    def __init__(
        self, data_dir: Path, settings: DockerSettings, on_output: Callable[[TaskRef], None] | None = None
    ) -> None:
        super().__init__(data_dir)
        instance = settings.instance or instance_mark(data_dir)
        self._settings = replace(settings, instance=instance)
        self._storage_address: str | None = None
        self._proxy: LoopbackProxy | None = None
        self._bridge_address: str | None = None
        self._api = DockerApi(settings.host)
        self._runtime = Runtime(self._api, settings.runtime_image)
        guard = RegistryCheck(settings.registries, [IPv4Network(settings.subnet_pool)], self._api.host)
        self._images = Images(self._api, data_dir / "private-images", guard)
        self._meter = UsageMeter(self._api)
        self._news = FileNews()
        self._on_output = on_output or (lambda _: None)
        most = KEPT_NETWORKS if settings.spare_networks else 0
        spares = SpareNetworks(data_dir / "networks", settings.spare_networks, most)
        self._networks = GangNetworks(self._api, instance, settings.subnet_pool, spares=spares)
        self._ways_in = ContainerSshServers(
            self._api, instance, self._runtime, self._networks, is_local=self._is_local
        )
        self._tasks: dict[TaskRef, DockerTask] = {}
        self._info: dict[str, Any] = {}
        self._watching: asyncio.Task[None] | None = None
        self._pulse: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        #: networks of the gangs that are under way; None: not known before the adoption
        self._gangs: set[str] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._bringing_runtime: asyncio.Task[None] | None = None
        self._around: EngineContext | None = None
        self._healthy = True

    @property
    def front_door_url(self) -> str | None:
        """Return the address at which containers reach the loopback proxy; None where there is none."""
        return self._proxy.url if self._proxy is not None else None

    @property
    def storage_host(self) -> str | None:
        """Return the name by which containers reach the storage; None where they do not reach us."""
        return STORAGE_HOST if self._storage_address is not None else None

    @property
    def bridge_address(self) -> str | None:
        """Return this host's address on Docker's default bridge; None where there is none."""
        return self._bridge_address

    async def start(self) -> None:
        """Connect to Docker; EngineError with one sentence where that is impossible."""
        await self._api.open()
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._connect()
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise EngineError(
                    msg("Docker at {host} does not tell about itself. Restart dockerd.", host=self._api.host)
                ) from error
            raise

    async def _connect(self) -> None:
        self._info = dict(await self._api.persist(self._api.docker.system.info))
        settings = self._settings
        if root := containers_root(self._info):
            _log.info("the daemon maps users: root in containers is user %d on its machine", root)
        await self._check_homes()
        self._bridge_address = await self._networks.gateway()
        if settings.front_door is not None:
            self._proxy = await open_proxy(
                self._bridge_address, settings.front_door, needed=settings.proxy_needed
            )
        self._storage_address = await self._find_storage()
        self._around = EngineContext(
            api=self._api,
            images=self._images,
            maker=ContainerCreator(
                self._api,
                settings,
                network_of=self._networks.name,
                node_cpus=int(self._info["NCPU"]),
                limits_storage=limits_storage(self._info),
                storage_address=self._storage_address,
                root=root,
            ),
            runtime=self._runtime,
            disks=ContainerDisks(self._api, is_local=self._is_local),
            holds=Holds(self._data_dir / "holds"),
            data_dir=self._data_dir,
            log_bytes=settings.logs.max_bytes_per_task,
            docker_files=await self._open_files(),
            emit=self._queue.put_nowait,
            on_output=self._on_output,
            is_local=self._is_local,
        )
        self._bringing_runtime = asyncio.create_task(self._bring_runtime())
        watched = asyncio.Event()
        self._watching = asyncio.create_task(self._watch(watched))
        self._pulse = asyncio.create_task(self._feel_pulse())
        await watched.wait()

    async def _open_files(self) -> DockerFiles | None:
        """Find Docker's own files of containers; None where this process may not read them."""
        folder = Path(str(self._info.get("DockerRootDir", ""))) / "containers"
        if not self._is_local or not os.access(folder, os.R_OK | os.X_OK):
            return None
        await self._news.start()
        return DockerFiles(folder, self._news)

    async def _bring_runtime(self) -> None:
        """Bring what tasks are logged into with, and with its image the walls between their networks."""
        await self._runtime.bring()
        # (an image that is not there was told of)
        if self._runtime.why_not is None:
            await build_walls(self._api, self._runtime.image, self._settings.instance)

    async def _check_homes(self) -> None:
        """Refuse options of homes with which no volume can be made; EngineError."""
        if not self._settings.home_options:
            return
        probe = {
            "Name": f"{PROBE}-{self._settings.instance}",
            "Driver": "local",
            "DriverOpts": dict(self._settings.home_options),
        }
        # (aiodocker has no type for it)
        create: Callable[[Mapping[str, Any]], Awaitable[DockerVolume]] = self._api.docker.volumes.create
        try:
            made = await self._api.persist(lambda: create(probe))
            await self._api.persist(made.delete)
        except aiodocker.DockerError as error:
            raise EngineError(cannot_limit(str(self._info.get("DockerRootDir")), error.message)) from error

    async def _find_storage(self) -> str | None:
        """Find the address that the storage's own name has in containers."""
        if self._proxy is not None:
            return self._proxy.address
        if self._settings.reached_at_bridge:
            return self._bridge_address
        reached_at = self._settings.reached_at
        if reached_at is None:
            return None
        try:
            found = await asyncio.get_running_loop().getaddrinfo(reached_at, None)
        except OSError as error:
            _log.warning("the storage has no name of its own in containers: %s: %s", reached_at, error)
            return None
        return str(found[0][4][0])

    async def close(self) -> None:
        """Close the connections to Docker; containers run on."""
        if self._proxy is not None:
            await self._proxy.close()
        own = [
            task
            for task in (
                *(self._watching, self._pulse, self._keeping, self._sweeping),
                self._bringing_runtime,
            )
            if task is not None
        ]
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)
        await asyncio.gather(*(task.let_go() for task in self._tasks.values()))
        if self._around is not None:
            self._around.disks.close()
        self._meter.close()
        self._news.close()
        await self._networks.close()
        await self._images.close()
        await self._api.close()
        self._queue.put_nowait(None)

    async def nodes(self) -> Sequence[Node]:
        """Return this host: CPUs and memory as Docker says, GPUs as NVML says where it is this machine."""
        return (self._node(),)

    def disk(self, node: str) -> DiskSpace | None:  # noqa: ARG002
        """Return the room for containers or for their logs; None where Docker is on another machine."""
        if not self._is_local:
            return None
        folder = Path(str(self._info.get("DockerRootDir", "")))
        # (where this runs in a container, its own root is on the disk of Docker's own files)
        return disk_space([self._data_dir, folder if folder.is_dir() else Path("/")])

    async def refuses_image(self, image: str) -> Message | None:
        """Return why no task may have an image; None where one may."""
        return await self._images.refuses(image)

    async def adopt(self, expected: Collection[TaskRef]) -> None:
        """Take up what runs or has run of the expected tasks; remove every other container of ours."""
        gangs = {network_name(task.job_id, task.attempt) for task in expected}
        await self._remove_all_but(lambda: {task.name for task in expected}, lambda: gangs)
        self._gangs = gangs
        await self._networks.begin(gangs)
        if self._around is not None:
            self._around.forget_all_but(expected)
        for ref in expected:
            self._task(ref).take_up()
        # not before it is known which tasks there are: a log that grows may be as old
        self._keeping = asyncio.create_task(self._keep_logs(self._settings.logs.keep_days, self._tasks))

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """Make the gang's network; give each member's address."""
        if self._gangs is not None:
            self._gangs.add(network_name(gang.job_id, gang.attempt))
        if self._bringing_runtime is not None:
            # the first jobs after a start are not to be without walls
            await asyncio.wait([self._bringing_runtime], timeout=_WALLS_SECONDS)
        return await self._networks.make(gang)

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:  # noqa: ARG002
        """Find none: each container has all ports of its own."""
        return ()

    async def launch(self, launch: Launch) -> None:
        """Start a task, unless it runs, has run, or was killed."""
        self._task(launch.task).launch(launch)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        """End a task's whole container, or keep it from ever being started."""
        self._task(task).kill(grace_seconds)

    async def disk_use(self) -> Mapping[TaskRef, int]:
        """Return the bytes of each running task's log, and of its container where that counts."""
        running = [task for task in self._tasks.values() if task.runs]
        folder = self._docker_folder
        counts = self._settings.counts_containers or folder is not None
        found = await asyncio.to_thread(
            lambda: [task.disk_use(folder, counts_container=counts) for task in running]
        )
        return {task.ref: size for task, size in zip(running, found, strict=True)}

    async def end_for_room(self, task: TaskRef) -> None:
        """End a running task because a disk of this machine is full."""
        if (found := self._tasks.get(task)) is not None:
            found.end_for_room()

    async def release(self, gang: Gang) -> None:
        """Remove an ended gang's containers and network; logs stay."""
        await asyncio.gather(*(self._release(member.task) for member in gang.members))
        network = network_name(gang.job_id, gang.attempt)
        await self._networks.remove(network)
        if self._gangs is not None:
            self._gangs.discard(network)

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:  # noqa: ARG002
        """Return None: this machine reaches the task's own address."""
        return None

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:
        """Return where a task's SSH server listens; NoSshEndpointError says why there is none."""
        return await self._ways_in.find(task)

    async def task_address(self, task: TaskRef) -> str:
        """Return where this machine reaches a running task; NoSshEndpointError where it does not run."""
        return await self._ways_in.address(task)

    async def usage(self, task: TaskRef) -> Usage | None:
        """Measure a task's container."""
        found = self._tasks.get(task)
        if found is None:
            return await self._meter.measure(task.name)
        return await self._meter.measure(task.name, found.disk_bytes, found.gpu_uuids, found.process)

    def _node(self) -> Node:
        return node_of(self._info, is_local=self._is_local, answers=self._healthy)

    @property
    def _is_local(self) -> bool:
        return self._api.socket_path is not None

    @property
    def _docker_folder(self) -> Path | None:
        """Return Docker's own folder, where it is on the disk of the data folder."""
        folder = Path(str(self._info.get("DockerRootDir", "")))
        with contextlib.suppress(OSError):
            if self._is_local and folder.stat().st_dev == self._data_dir.stat().st_dev:
                return folder
        return None

    @property
    def _label(self) -> str:
        return f"{LABEL_INSTANCE}={self._settings.instance}"

    def _task(self, ref: TaskRef) -> DockerTask:
        if self._around is None:
            raise RuntimeError("the engine is not started")
        if ref not in self._tasks:
            self._tasks[ref] = DockerTask(ref, self._around)
        return self._tasks[ref]

    async def _release(self, ref: TaskRef) -> None:
        task = self._task(ref)
        await task.let_go()
        await self._api.remove(ref.name)
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.log(ref).folder)  # from now on its age counts
        # (beside the loop: a slow disk is not to keep others waiting)
        await asyncio.to_thread(task.forget)
        self._meter.forget(ref.name)
        self._tasks.pop(ref, None)

    async def _remove_all_but(
        self, containers: Callable[[], Set[str]], networks: Callable[[], Set[str]]
    ) -> None:
        """Remove what is ours and not among these, which are asked for after it was looked what there is."""
        found = {_name(each) for each in await self._api.containers(self._label)}
        await asyncio.gather(*(self._api.remove(name) for name in found - containers()))
        for network in await self._networks.names():
            if network not in networks():
                await self._networks.remove(network)

    def _sweep_later(self) -> None:
        """After a break: a call that was given up may have made something after that was removed."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        await asyncio.sleep(SWEEP_SECONDS)
        if self._gangs is None:
            return
        gangs = self._gangs
        try:
            await self._remove_all_but(lambda: {ref.name for ref in self._tasks}, lambda: gangs)
        except (EngineError, aiodocker.DockerError) as error:
            _log.warning("what a break of Docker left cannot be removed: %s", error)

    async def _watch(self, watched: asyncio.Event) -> None:
        """Hear from Docker what happens to containers, for as long as the engine is open."""
        loop = asyncio.get_running_loop()
        away: asyncio.TimerHandle | None = None
        while True:
            try:
                async with self._api.events(self._label) as events:
                    if away is not None:
                        _log.warning("Docker's events are here again")
                        away.cancel()
                        away = None
                        self._sweep_later()
                    self._set_health(True)
                    running = {str(each["Id"]) for each in await self._api.containers(self._label, "running")}
                    for task in self._tasks.values():
                        task.list_running(running)
                    watched.set()
                    async for event in events:
                        self._hear(event)
            except (DaemonUnreachableError, aiodocker.DockerError) as error:
                if away is None:
                    _log.warning("Docker's events broke off (%s); trying again", error)
            except Exception:
                _log.exception("Docker's events cannot be read; trying again")
            if away is None:
                away = loop.call_later(AWAY_SECONDS, self._set_health, False)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _feel_pulse(self) -> None:
        """Notice a daemon that hangs: nothing is placed on its node until it answers again."""
        hangs = False
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            try:
                async with asyncio.timeout(AWAY_SECONDS):
                    await self._api.docker.version()
            except TimeoutError:
                if not hangs:
                    _log.warning("Docker has not answered for %g seconds", AWAY_SECONDS)
                hangs = True
                self._set_health(False)
            except (aiodocker.DockerError, aiohttp.ClientError, OSError):
                continue  # it is away, which its events tell
            else:
                if hangs:
                    _log.warning("Docker answers again")
                    self._set_health(True)
                    self._sweep_later()
                hangs = False

    def _hear(self, event: Mapping[str, Any]) -> None:
        ref = TaskRef.parse(str(event["Actor"]["Attributes"].get("name")))
        if ref is None or ref not in self._tasks:
            return
        container = str(event["Actor"]["ID"])
        if event["Action"] == "oom":
            self._tasks[ref].ran_out_of_memory(container)
        elif event["Action"] in ("die", "destroy"):
            code = event["Actor"]["Attributes"].get("exitCode")
            self._tasks[ref].container_died(container, None if code is None else int(code))

    def _set_health(self, healthy: bool) -> None:
        if healthy != self._healthy:
            self._healthy = healthy
            self._queue.put_nowait(NodesChanged(time.time_ns() // 10**6, (self._node(),)))


def _name(container: DockerContainer) -> str:
    return str(container["Names"][0]).removeprefix("/")


def instance_mark(data_dir: Path) -> str:
    """Return this scheduler's own mark, by which it knows its containers among those of others."""
    path = data_dir / "docker-instance"
    if not path.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        write_durably(path, secrets.token_hex(8).encode())
    if mark := path.read_text().strip():
        return mark
    raise EngineError(
        msg(
            "The file {file} is empty: the containers that run cannot be found. Put it back from a backup.",
            file=path,
        )
    )
