"""A real Apache HDFS with WebHDFS on loopback; `python -m tests.testbed.hdfs` runs one until ^C."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pai_scheduler.testing.ports import free_ports
from tests.testbed.hadoop import java, provide_hadoop, write_settings
from tests.testbed.machine import CannotError, say

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_HA_ADMIN = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
_NAME_SERVICE = "pai"
_START_SECONDS = 90

#: Of the service, which may act for everybody, and is a superuser as the documentation has it.
ACCOUNT = "pai"
#: Users that HDFS knows, with their groups; the first group of the service's account makes it superuser.
GROUPS = {ACCOUNT: "supergroup", "alice": "alice,vision", "bob": "bob"}


class Hdfs:
    """A name node (or two: a high-availability pair, the first one active) and a data node."""

    def __init__(self, name_nodes: int = 1) -> None:
        self._hadoop = provide_hadoop()
        self._folder = Path(tempfile.mkdtemp(prefix="pai-hdfs-"))
        ports = free_ports(3 + 2 * name_nodes)
        self._data_ports = ports[:3]
        self._rpc_ports = ports[3 : 3 + name_nodes]
        self._http_ports = ports[3 + name_nodes :]
        self._name_nodes: list[subprocess.Popen[bytes] | None] = [None] * name_nodes
        self._data_node: subprocess.Popen[bytes] | None = None
        try:
            self._write_settings()
            self._format()
            for index in range(name_nodes):
                self._launch_namenode(index)
            self.start_datanode()
            if name_nodes > 1:
                self.make_active(0)
            self._wait_until_ready(0)
        except BaseException:
            self.remove()
            raise

    @property
    def urls(self) -> list[str]:
        """Return the HTTP addresses of the name nodes."""
        return [f"http://127.0.0.1:{port}" for port in self._http_ports]

    @property
    def url(self) -> str:
        """Return the HTTP address of the name node; of a pair both, as clients take them."""
        return ";".join(self.urls)

    def stop_namenode(self, index: int = 0, number: signal.Signals = signal.SIGKILL) -> None:
        """End a name node and wait: killed, as when its machine fails. Nothing that was answered is lost."""
        _end(self._name_nodes[index], number)
        self._name_nodes[index] = None

    def signal_namenode(self, number: signal.Signals, index: int = 0) -> None:
        """Send a name node a signal, as SIGSTOP, with which it hangs until SIGCONT."""
        if (process := self._name_nodes[index]) is not None:
            process.send_signal(number)
            if number == signal.SIGSTOP:
                # (a thread on another processor may answer once more meanwhile)
                self._wait(lambda: _has_stopped(process.pid))

    def start_namenode(self, index: int = 0) -> None:
        """Start a name node again and wait until it serves; one of a pair comes back as the standby."""
        self._launch_namenode(index)
        if len(self._name_nodes) == 1:
            self._wait_until_ready(index)
        else:
            self._wait(lambda: self._answers(index))

    def make_active(self, index: int) -> None:
        """Let one name node of a pair serve; the one that did must be a standby, or dead."""
        self._wait(lambda: self._answers(index))
        self._run(index, _HA_ADMIN, "-transitionToActive", _name(index))

    def make_standby(self, index: int) -> None:
        """Let one name node of a pair serve no longer."""
        self._run(index, _HA_ADMIN, "-transitionToStandby", _name(index))

    def stop_datanode(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the data node and wait."""
        _end(self._data_node, number)
        self._data_node = None

    def start_datanode(self) -> None:
        """Start the data node."""
        self._data_node = self._launch(0, "datanode", _DATA_NODE)

    def wait_for_datanode(self) -> None:
        """Wait until the data node serves and the name node counts on it."""
        self._wait_until_ready(0)

    def remove(self) -> None:
        """End it and remove all that it had."""
        for process in (*self._name_nodes, self._data_node):
            _end(process, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _settings(self, index: int) -> Path:
        return self._folder / f"settings-{index}"

    def _write_settings(self) -> None:
        pair = len(self._name_nodes) > 1
        core = {
            "fs.defaultFS": f"hdfs://{_NAME_SERVICE if pair else f'127.0.0.1:{self._rpc_ports[0]}'}",
            "hadoop.tmp.dir": str(self._folder / "tmp"),
            f"hadoop.proxyuser.{ACCOUNT}.hosts": "*",
            f"hadoop.proxyuser.{ACCOUNT}.groups": "*",
            "hadoop.user.group.static.mapping.overrides": ";".join(f"{u}={g}" for u, g in GROUPS.items()),
        }
        data, http_port, ipc = self._data_ports
        hdfs = {
            "dfs.replication": "1",
            "dfs.webhdfs.enabled": "true",
            "dfs.permissions.enabled": "true",
            "dfs.permissions.superusergroup": "supergroup",
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": "0",
            # a data node that ended is missed soon
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.heartbeat.recheck-interval": "1000",
            "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
            "dfs.ha.tail-edits.period": "1",
            "dfs.datanode.data.dir": f"file://{self._folder}/data",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.datanode.address": f"127.0.0.1:{data}",
            "dfs.datanode.http.address": f"127.0.0.1:{http_port}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
        }
        if pair:
            names = [_name(index) for index in range(len(self._name_nodes))]
            hdfs |= {
                "dfs.nameservices": _NAME_SERVICE,
                f"dfs.ha.namenodes.{_NAME_SERVICE}": ",".join(names),
                "dfs.namenode.shared.edits.dir": f"file://{self._folder}/shared-edits",
                "dfs.ha.fencing.methods": "shell(/bin/true)",
                f"dfs.client.failover.proxy.provider.{_NAME_SERVICE}": (
                    "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
                ),
            }
            for index, name in enumerate(names):
                service = f"{_NAME_SERVICE}.{name}"
                hdfs[f"dfs.namenode.rpc-address.{service}"] = f"127.0.0.1:{self._rpc_ports[index]}"
                hdfs[f"dfs.namenode.http-address.{service}"] = f"127.0.0.1:{self._http_ports[index]}"
        else:
            hdfs["dfs.namenode.http-address"] = f"127.0.0.1:{self._http_ports[0]}"
        for index in range(len(self._name_nodes)):
            own = {"dfs.namenode.name.dir": f"file://{self._folder}/name-{index}"}
            if pair:
                own["dfs.ha.namenode.id"] = _name(index)
            write_settings(self._settings(index), {"core-site.xml": core, "hdfs-site.xml": {**hdfs, **own}})

    def _format(self) -> None:
        self._run(0, _NAME_NODE, "-format", "-force", "-nonInteractive")
        for index in range(1, len(self._name_nodes)):
            # the shared edits hold what the first one was formatted with
            self._run(0, _NAME_NODE, "-initializeSharedEdits", "-force", "-nonInteractive")
            shutil.copytree(self._folder / "name-0", self._folder / f"name-{index}")

    def _run(self, index: int, *arguments: str) -> None:
        done = subprocess.run(
            java(self._hadoop, self._settings(index), *arguments),
            capture_output=True,
            text=True,
            cwd=self._folder,
        )
        if done.returncode != 0:
            raise CannotError(f"{' '.join(arguments)} failed: {done.stderr.strip()[-2000:]}")

    def _launch_namenode(self, index: int) -> None:
        self._name_nodes[index] = self._launch(index, f"namenode-{index}", _NAME_NODE)

    def _launch(self, index: int, name: str, program: str) -> subprocess.Popen[bytes]:
        with open(self._folder / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                java(self._hadoop, self._settings(index), program),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder,
            )  # fmt: skip

    def _wait_until_ready(self, index: int) -> None:
        self._wait(lambda: self._is_ready(index))

    def _wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not done():
            dead = [p for p in (*self._name_nodes, self._data_node) if p is not None and p.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise CannotError(f"HDFS does not start: {self._last_words()}")
            time.sleep(0.1)

    def _answers(self, index: int) -> bool:
        return self._ask(index, "NameNodeStatus") is not None

    def _is_ready(self, index: int) -> bool:
        """Return whether a name node is out of its safe mode and knows a living data node."""
        state = self._ask(index, "FSNamesystemState")
        return state is not None and state["FSState"] == "Operational" and state["NumLiveDataNodes"] > 0

    def _ask(self, index: int, bean: str) -> dict[str, Any] | None:
        connection = http.client.HTTPConnection("127.0.0.1", self._http_ports[index], timeout=10)
        try:
            connection.request("GET", f"/jmx?qry=Hadoop:service=NameNode,name={bean}")
            beans = json.loads(connection.getresponse().read())["beans"]
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        return beans[0] if beans else None

    def _last_words(self) -> str:
        logs = sorted(self._folder.glob("*.log"))
        return " ".join(f"{log.name}: {log.read_text(errors='replace')[-600:]}" for log in logs)


def _name(index: int) -> str:
    return f"nn{index + 1}"


def _end(process: subprocess.Popen[bytes] | None, number: signal.Signals) -> None:
    if process is not None:
        process.send_signal(number)
        process.wait()


def main() -> None:
    """Run one until ^C, and say where."""
    hdfs = Hdfs()
    try:
        print(hdfs.url, flush=True)
        say(f"WebHDFS of {urlsplit(hdfs.url).netloc}; the service's account is {ACCOUNT}; ^C ends it")
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        hdfs.remove()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()


def _has_stopped(pid: int) -> bool:
    """Return whether each thread of a process stands still."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(file.read_text().rpartition(") ")[2].startswith("T") for file in threads)
