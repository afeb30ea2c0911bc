"""What a job in a container tries against the machine, the scheduler, and the jobs of others."""

from __future__ import annotations

import asyncio
import shlex

from pai_scheduler.engine.protocol import EndCause
from pai_scheduler.testing.lab import Lab

PROBE = """python3 - {targets} <<'END'
import socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    if host == "gateway":
        routes = [line.split() for line in open("/proc/net/route")]
        host = next(socket.inet_ntoa(bytes.fromhex(r[2])[::-1]) for r in routes if r[1] == "00000000")
    with socket.socket() as probe:
        probe.settimeout(1)
        try:
            probe.connect((host, int(port)))
            print(target, "open")
        except OSError:
            print(target, "shut")
END"""


async def test_a_job_reaches_neither_anothers_tasks_nor_what_listens_on_loopback_here(
    walled_lab: Lab,
) -> None:
    listening = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    (launch,) = await walled_lab.prepare(walled_lab.make("echo up; exec python3 -m http.server 8000"))
    await walled_lab.engine.launch(launch)
    await walled_lab.printed(launch.task, "up")
    targets = [f"{launch.address}:8000", f"gateway:{port}", f"127.0.0.1:{port}", f"172.17.0.1:{port}"]
    task, ended = await walled_lab.run(PROBE.format(targets=" ".join(targets)))
    listening.close()
    assert ended.exit_code == 0
    assert walled_lab.output(task).splitlines() == [f"{target} shut" for target in targets]


#: What root of a machine may do.
DEEDS = (
    "mount -t tmpfs none /mnt",
    "echo 1 > /proc/sys/kernel/core_pattern",
    "echo h > /proc/sysrq-trigger",
    "mknod /tmp/disk b 8 0 && head -c 1 /tmp/disk",
    # what the machine's list of devices would let it do
    "mknod /tmp/null c 1 3",
    "echo 100000 > $(ls /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max)",
    "date -s 2000-01-01",
    "test -e /var/run/docker.sock",
    "python3 -c 'import os; os.setns(os.open(\"/proc/1/ns/net\", 0), 0); os.kill(1, 0); os.nice(-5)'",
)


async def test_root_in_a_container_is_not_root_of_the_machine(docker_lab: Lab) -> None:
    tried = "".join(f"( {deed} ) 2>/dev/null >&2 && echo {shlex.quote(deed)}\n" for deed in DEEDS)
    task, ended = await docker_lab.run(f"{tried}echo all tried", memory_mb=200)
    assert ended.cause is EndCause.EXITED
    assert docker_lab.output(task) == "all tried\n"


async def test_an_image_name_smuggles_no_option(docker_lab: Lab) -> None:
    images = ("--privileged", "-v=/:/host", "--cap-add=ALL", "x?tag=y", "\x1b[31mred")
    for _, ended in await docker_lab.run_gang(*({"image": image} for image in images)):
        assert ended.cause is EndCause.REFUSED


async def test_no_variable_changes_how_the_container_is_made(docker_lab: Lab) -> None:
    env = {"--privileged": "1", "A\nB": "c", "HostConfig": '{"Privileged": true}', "DOCKER_HOST": "tcp://x"}
    task, ended = await docker_lab.run("grep CapEff /proc/self/status; ls /dev | wc -l", env=env)
    assert ended.exit_code == 0
    capabilities, devices = docker_lab.output(task).splitlines()
    assert int(capabilities.split()[1], 16) & (1 << 21) == 0  # CAP_SYS_ADMIN
    assert int(devices) < 30


async def test_root_in_a_container_has_the_capabilities_that_jobs_use_and_no_others(docker_lab: Lab) -> None:
    chown, dac_override, fowner, fsetid, kill, setgid, setuid = 0, 1, 3, 4, 5, 6, 7
    net_bind_service, net_raw, sys_chroot, audit_write, setfcap = 10, 13, 18, 29, 31
    used = {chown, dac_override, fowner, fsetid, kill, setgid, setuid, net_bind_service, net_raw, sys_chroot}
    deeds = "chown 1000:1000 file && chroot / true && chmod u+s file"
    task, ended = await docker_lab.run(f"touch file && {deeds} && grep CapBnd /proc/self/status")
    assert ended.exit_code == 0
    bounding = int(docker_lab.output(task).split()[1], 16)
    assert {bit for bit in range(64) if bounding >> bit & 1} == used | {audit_write, setfcap}
