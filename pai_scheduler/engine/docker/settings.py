"""Settings of the Docker engine, which also say how the containers of its tasks are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pai_scheduler.cluster.definition import LogKeeping, Registries

from .runtime import image_of_this_version


@dataclass(frozen=True, slots=True)
class DockerSettings:
    """Settings of a `DockerEngine`. `host`: as in DOCKER_HOST."""

    host: str | None = None
    #: the mark by which its containers are known among those of others; empty: one that its data folder keeps
    instance: str = ""
    logs: LogKeeping = field(default_factory=LogKeeping)
    #: where images may come from
    registries: Registries = field(default_factory=Registries)
    #: what tasks' SSH servers come from
    runtime_image: str = field(default_factory=image_of_this_version)
    #: a folder in which users' homes are; None: each is a volume, made with the driver's `home_options`
    homes: Path | None = None
    home_options: Mapping[str, str] | None = None
    #: the address of this host at which every task's SSH server gets a free port; None: nowhere
    publish_ssh: str | None = None
    #: what the gangs' networks are cut from
    subnet_pool: str = "10.201.0.0/16"
    #: How many networks are made in advance, so that a small gang starts sooner; where there are any, those
    #: of ended gangs are used again, too.
    spare_networks: int = 0
    #: a port on loopback that containers may reach, at the engine's `front_door_url`
    front_door: int | None = None
    #: with a front door: it is an error where containers cannot reach it
    proxy_needed: bool = True
    #: without a front door: the host at which containers reach this service; None: they do not
    reached_at: str | None = None
    #: they reach it at the address of Docker's bridge, where somebody else lets them in
    reached_at_bridge: bool = False
    #: what fills Docker's own disk is to be known too, wherever that is seen from
    counts_containers: bool = False
