"""`make run`: starts JupyterHub with the scheduler as its service, says where it is, stops it with Ctrl-C.

Jobs and notebook servers run on when the Hub stops; the next start finds them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TextIO
from urllib.parse import urlsplit

import yaml

from pai_scheduler.cluster.definition import parse_definition

from .leftovers import end_leftovers
from .node import node_folder
from .settings import (
    LEAST_ADMIN_PASSWORD,
    LEAST_PASSWORD,
    CannotStart,
    Settings,
    new_admin_password,
    new_password,
    port_is_free,
)

_REPOSITORY = Path(__file__).resolve().parent.parent
#: Seconds until a Hub that has not answered is called failed.
_START_PATIENCE = 120.0
#: It is ready a second sooner without a grammar that it hardly ever needs.
_JUPYTERHUB = (
    "from pai_scheduler.job.lazy_grammar import put_off_grammar; put_off_grammar();"
    " from jupyterhub.app import main; main()"
)
#: Options of the scheduler of which its sentences tell.
_FOR_ONE_START = ("--start-empty", "--new-keys")
#: Lines of the Hub's log that are shown when it does not start.
_LOG_LINES = 25
#: Declared nodes that are named.
_NAMED = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Start the Hub and stay until it ends; gives the exit status."""
    settings = parse_settings(arguments)
    # SIGINT too: a script that starts this in the background has made it ignore that
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _run(settings)
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def parse_settings(arguments: Sequence[str] | None) -> Settings:
    """Read the words of `make run`; the passwords are new ones."""
    parser = argparse.ArgumentParser(prog="make run", description=__doc__)
    parser.add_argument(
        "--engine", choices=("process", "docker", "swarm"), default="process", help="how tasks run"
    )
    parser.add_argument("--cluster", type=Path, help="file that declares nodes; without it: this machine")
    parser.add_argument(
        "--storage", default="", help="users' files: a folder, or an HDFS (http://namenode:9870)"
    )
    parser.add_argument(
        "--storage-user", default="", help="the scheduler's account on an HDFS (default: this one's name)"
    )
    parser.add_argument(
        "--scheduler-options", default="", help="more options for pai-scheduler, as a shell has them"
    )
    parser.add_argument(
        "--registry", default="", help="with --engine swarm: where every node gets the project's images from"
    )
    parser.add_argument(
        "--admin",
        default="",
        help="names of the Hub's administrators, with spaces between (default: none)",
    )
    parser.add_argument(
        "--sessions",
        type=Path,
        help="file that says when notebook servers end (default: the one beside this)",
    )
    parser.add_argument(
        "--config",
        type=Path,
        help="the Hub's configuration (default: jupyterhub_config.py beside this; others: variants/)",
    )
    parser.add_argument(
        "--scheduler",
        type=Path,
        help="file with the rest of the scheduler's settings (default: the one beside this)",
    )
    parser.add_argument("--port", type=int, default=8000, help="the Hub's public port (default 8000)")
    parser.add_argument("--folder", type=Path, help="where everything is kept (default .run/<engine>)")
    given = parser.parse_args(arguments)
    if given.cluster is not None and not given.cluster.is_file():
        parser.error(
            f"there is no cluster file {given.cluster}; an example is hub_config/examples/gpu-lab.yaml"
        )
    folder = (given.folder or _REPOSITORY / ".run" / given.engine).resolve()
    if given.config is not None and not given.config.is_file():
        parser.error(f"there is no configuration {given.config}; some are in hub_config/variants")
    cluster = given.cluster.resolve() if given.cluster else None
    storage = given.storage
    if storage and "://" not in storage:
        # the Hub works in a folder of its own
        storage = str(Path(storage).expanduser().resolve())
    scheduler_options, notebook_image = given.scheduler_options, ""
    if given.registry:
        # only then: it takes a moment to load
        from hub_config.images.push import AGENT, NOTEBOOK, RUNTIME, name_in

        agent, runtime = name_in(given.registry, AGENT), name_in(given.registry, RUNTIME)
        scheduler_options += f" --agent-image {quote(agent)} --runtime-image {quote(runtime)}"
        notebook_image = name_in(given.registry, NOTEBOOK)
    return Settings(
        folder,
        given.engine,
        cluster,
        given.port,
        new_password(),
        storage,
        given.storage_user,
        scheduler_options,
        notebook_image,
        given.sessions.resolve() if given.sessions else None,
        given.scheduler.resolve() if given.scheduler else None,
        given.config.resolve() if given.config else None,
        tuple(given.admin.split()),
        new_admin_password(),
    )


def _run(settings: Settings) -> int:
    _check_engine(settings)
    _check_sessions(settings)
    if len(settings.password) < LEAST_PASSWORD:
        raise CannotStart(f"PASSWORD must have at least {LEAST_PASSWORD} characters.")
    if settings.administrators and len(settings.admin_password) < LEAST_ADMIN_PASSWORD:
        raise CannotStart(f"ADMIN_PASSWORD must have at least {LEAST_ADMIN_PASSWORD} characters.")
    (settings.folder / "hub").mkdir(parents=True, exist_ok=True)
    # the Hub's database and log are nobody else's business on this machine
    (settings.folder / "hub").chmod(0o700)
    with open(settings.folder / "lock", "a+") as lock, open(settings.folder / "hub" / "hub.log", "ab") as log:
        _take(lock, settings)
        for what in end_leftovers(settings.folder):
            print(f"Ended {what}, left behind by a Hub that was killed.")
        if not port_is_free(settings.port):
            raise CannotStart(
                f"Port {settings.port} is taken by another program. Stop it, or choose another port, "
                f"for example: make run PORT={settings.port + 10}"
            )
        log_start = log.tell()
        environment = _environment(settings)
        hub = subprocess.Popen(  # noqa: S603 - our own program and settings
            [
                sys.executable,
                "-c",
                _JUPYTERHUB,
                "--config",
                str(settings.config or Path(__file__).with_name("jupyterhub_config.py")),
            ],
            cwd=settings.folder / "hub",
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for this process alone, which passes it on
            start_new_session=True,
            # the Hub holds the lock as long as it lives, even when this process is killed
            pass_fds=(lock.fileno(),),
        )
        lock.truncate(0)
        lock.write(f"{hub.pid} {settings.url}")
        lock.flush()
        return _watch(hub, settings, environment, log_start)


def _watch(
    hub: subprocess.Popen[bytes], settings: Settings, environment: Mapping[str, str], log_start: int
) -> int:
    scheduler = f"http://127.0.0.1:{environment['PAI_SCHEDULER_PORT']}"
    log = settings.folder / "hub" / "hub.log"
    print(f"Starting JupyterHub … (log: {_short(log)})", flush=True)
    public_url = _public_url(settings, environment)
    try:
        # the scheduler itself first: asked too early, the proxy fills the log with complaints
        for address in (scheduler, settings.url):
            _wait_for(f"{address}/services/pai/api/v1", hub, log, log_start)
        print(_welcome(settings, environment["PAI_SSH_PORT"], public_url), flush=True)
        status = hub.wait()
        print(
            f"The Hub ended with status {status}. The last lines of its log:\n{_tail(log, log_start)}",
            file=sys.stderr,
        )
        return status or 1
    except KeyboardInterrupt:
        print(
            "\nStopping the Hub; jobs and notebook servers run on. `make run` takes them up again.",
            flush=True,
        )
        return 0
    finally:
        _stop(hub)
        # a Hub that is stopped while it starts, or that gives up, does not end what it has started
        end_leftovers(settings.folder)


def _wait_for(address: str, hub: subprocess.Popen[bytes], log: Path, log_start: int) -> None:
    deadline = time.monotonic() + _START_PATIENCE
    while not _answers(address):
        if hub.poll() is not None:
            raise CannotStart(f"The Hub did not start. The last lines of its log:\n{_tail(log, log_start)}")
        if time.monotonic() > deadline:
            raise CannotStart(
                f"The Hub does not answer after {_START_PATIENCE:.0f} s. The last lines of its log:\n"
                f"{_tail(log, log_start)}"
            )
        time.sleep(0.4)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:  # noqa: S310 - our own http address
            return bool(response.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def _public_url(settings: Settings, environment: Mapping[str, str]) -> str:
    """Return the address at which browsers reach the Hub, as its configuration has it."""
    if settings.config is None:
        return settings.url
    # only then: it takes a moment to load
    from pai_spawner.doctor.configuration import ConfigurationError, read_configuration

    # (a configuration reads what was decided there)
    os.environ.update(environment)
    try:
        app = read_configuration(settings.config, settings.folder / "hub", environment).app
    except ConfigurationError:
        return settings.url  # the Hub itself says in its log what is wrong
    url = str(app.public_url or app.bind_url).rstrip("/")
    place = urlsplit(url)
    if place.hostname in (None, "0.0.0.0", "::"):  # noqa: S104 - asked, not listened at
        return place._replace(netloc=f"{socket.gethostname()}:{place.port or settings.port}").geturl()
    return url


def _welcome(settings: Settings, ssh_port: str, url: str) -> str:
    lines = [
        "",
        f"    JupyterHub is at   {url}",
        *(
            [
                "                       Only this machine reaches it. On yours, before you open it: "
                f"ssh -L {settings.port}:127.0.0.1:{settings.port} {socket.gethostname()}",
                "                       To open it to others: docs/administrators/hub.md, “TLS”",
            ]
            if urlsplit(url).hostname == "127.0.0.1"
            else []
        ),
        *(
            # (another configuration has a login of its own)
            ["    user name          any name you like", f"    password           {settings.password}"]
            if settings.config is None
            else []
        ),
        f"    into a task        ssh -p {ssh_port} NAME+JOB@127.0.0.1 (JupyterLab says how)",
        "",
    ]
    if settings.administrators:
        names = ", ".join(settings.administrators)
        lines[-1:] = [
            f"    administrators     {names}, at {url}/services/pai-console/admin",
            f"    their password     {settings.admin_password}",
            "",
        ]
    if settings.cluster:
        lines.append(_nodes(settings.cluster, settings.engine))
    lines.append("Ctrl-C stops the Hub; jobs and notebook servers run on.")
    return "\n".join(lines)


def _nodes(cluster: Path, engine: str) -> str:
    """Say which nodes and GPUs there are with a cluster file, which the scheduler has read already."""
    declared = parse_definition(yaml.safe_load(cluster.read_text(encoding="utf-8"))).nodes
    found = "the Swarm" if engine == "swarm" else "this machine"
    names = ", ".join(node.name for node in declared[:_NAMED]) + (" …" if len(declared) > _NAMED else "")
    if not declared:
        return f"{_short(cluster)} declares no node: nodes and GPUs are those of {found}."
    if engine == "swarm":
        said = f"Nodes are those of {found}; of {names} {_short(cluster)} says what they have."
    else:
        said = f"Nodes are those declared in {_short(cluster)}: {names}."
    if any(node.gpus for node in declared):
        said += " GPUs that are declared and not found are simulated."
    return said


def _environment(settings: Settings) -> dict[str, str]:
    environment = {**os.environ, **settings.environment()}
    # the scheduler and the servers are found by name, the proxy's script runs `node` by name
    environment["PATH"] = os.pathsep.join(
        [str(Path(sys.prefix) / "bin"), str(node_folder()), environment.get("PATH", os.defpath)]
    )
    return environment


def _check_engine(settings: Settings) -> None:
    if settings.engine == "process":
        return
    # only then: it takes a moment to load
    from pai_scheduler.engine.docker.sync_client import check_docker
    from pai_scheduler.engine.protocol import EngineError

    try:
        check_docker()
    except EngineError as error:
        raise CannotStart(
            f"ENGINE={settings.engine} needs a Docker Engine (Debian: apt-get install docker.io). {error}"
        ) from None


def _check_sessions(settings: Settings) -> None:
    """Say at once what is wrong in the file, instead of in a service's log."""
    if settings.sessions is None:
        return
    from pai_spawner.sessions.policy_file import PolicyError, read_policy

    try:
        read_policy(settings.sessions)
    except PolicyError as error:
        raise CannotStart(str(error)) from None


def _take(lock: TextIO, settings: Settings) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        pid, _, url = lock.read().partition(" ")
        raise CannotStart(
            f"A Hub with its data in {_short(settings.folder)} runs already, at {url or 'an unknown address'}"
            f" (process {pid or 'unknown'}). Use that one, or stop it first."
        ) from None


def _stop(hub: subprocess.Popen[bytes]) -> None:
    if hub.poll() is None:
        hub.terminate()
        try:
            hub.wait(30)
        except subprocess.TimeoutExpired:
            hub.kill()
            hub.wait()


def _tail(log: Path, start: int) -> str:
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    # the scheduler says in one sentence why it cannot start; the Hub's own lines only follow from that
    sentences = [line for line in lines if line.startswith("pai-scheduler: ")]
    for option in _FOR_ONE_START:
        if sentences and option in sentences[-1]:
            sentences[-1] += f"\nThat is here: make run SCHEDULER_OPTIONS={option}"
    return "\n".join(sentences[-1:] or lines[-_LOG_LINES:])


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())
