"""Settings of kernels that are jobs, by an administrator or a person: `c.PAIKernels.…`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from traitlets import Bool, Dict, Float, Integer, List, Unicode, default
from traitlets.config import LoggingConfigurable

from pai_scheduler.rest.address import DEFAULT_URL

from ..own_python import own_packages


class PAIKernels(LoggingConfigurable):
    """Kernels that run as jobs of the scheduler."""

    enabled = Bool(
        True, help="Whether kernels that run as jobs are offered at all, and found again after a restart."
    ).tag(config=True)
    choices = List(
        Dict(),
        help="""What is offered, each with some of: `title` (shown behind “Python 3 on …”), `name` (a part of
        the kernel's name in notebooks), `gpus`, `gpu_type`, `cpus`, `memory_mb`, `shm_mb`, `image`, `python`,
        `virtual_cluster`, `preemptible`, `idle_minutes`. Empty: one GPU of each type that the person's
        virtual clusters guarantee. Example: [{"gpus": 1, "gpu_type": "P100"}, {"memory_mb": 8192}].""",
    ).tag(config=True)
    kernels = List(
        Unicode(),
        default_value=["python3"],
        help="The installed kernels that are offered as jobs, by their names in `jupyter kernelspec list`.",
    ).tag(config=True)
    image = Unicode(help="The image of kernels. Default: the notebook server's own.").tag(config=True)
    python = Unicode(
        "python3",
        help="""The Python with pyzmq in images other than the notebook server's own; it runs the kernels that
        are written in Python, too.""",
    ).tag(config=True)
    virtual_cluster = Unicode(
        help="The virtual cluster of kernels. Default: the notebook server's own, or one that has enough."
    ).tag(config=True)
    cpus = Integer(2, help="CPUs of a kernel.").tag(config=True)
    memory_mb = Integer(8192, help="Memory of a kernel, in MB.").tag(config=True)
    shm_mb = Integer(1024, help="Shared memory of a kernel, in MB, as PyTorch's data loaders need it.").tag(
        config=True
    )
    preemptible = Bool(
        False,
        help="""Whether kernels may borrow what other virtual clusters do not use. Then they are stopped, with
        all that they know, when it is needed there.""",
    ).tag(config=True)
    idle_minutes = Float(
        30,
        min=0,
        help="""Minutes without use after which a kernel ends and its resources are free again, whether its
        notebook is open or not; 0: never.""",
    ).tag(config=True)
    carry = List(
        Unicode(),
        help="Variables that a kernel in another image gets from the notebook server besides the usual.",
    ).tag(config=True)
    server = Unicode(
        help="""Which notebook server this is to the kernels that outlive it. Default: its address below the
        Hub, or its folder."""
    ).tag(config=True)

    @default("server")
    def _default_server(self) -> str:
        return (
            os.environ.get("JUPYTERHUB_SERVICE_PREFIX") or self._of_the_server("root_dir") or str(Path.cwd())
        )

    @property
    def api_url(self) -> str:
        """Return the scheduler's address, as the server extension has it."""
        return self._of_the_extension("api_url") or os.environ.get("PAI_API_URL") or DEFAULT_URL

    @property
    def token(self) -> str:
        """The person's own token; empty: there is none."""
        return (
            self._of_the_extension("token")
            or os.environ.get("PAI_TOKEN")
            or os.environ.get("JUPYTERHUB_API_TOKEN")
            or ""
        )

    @property
    def own_python(self) -> str:
        """The Python of the notebook server, which runs the runner in the same image."""
        return sys.executable

    @property
    def kernel_python(self) -> str:
        """The Python of kernels in the same image: the person's own, which has the server's packages too."""
        own = own_packages()
        return str(own.python) if own is not None else self.own_python

    def _of_the_extension(self, name: str) -> str:
        section: Any = self.config.get("PAIExtension", {})
        return str(section.get(name) or "")

    def _of_the_server(self, name: str) -> str:
        parent = self.parent
        while parent is not None:
            if value := getattr(parent, name, ""):
                return str(value)
            parent = getattr(parent, "parent", None)
        return ""
