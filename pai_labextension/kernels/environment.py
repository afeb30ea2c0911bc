"""Which variables of the notebook server a kernel gets that runs in a task of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

#: What tells the server's own task apart from others, and is told to the kernel's task by the scheduler.
_OF_A_TASK = (
    "CPU_GUARANTEE",
    "CPU_LIMIT",
    "CUDA_",
    "FRAMEWORK_NAME",
    "HADOOP_USER_NAME",
    "HOSTNAME",
    "JPY_",
    "MEM_GUARANTEE",
    "MEM_LIMIT",
    "NVIDIA_",
    "OLDPWD",
    "PAI_",
    "PWD",
    "SHLVL",
    "SSH_",
)
#: Of these all the same: who the person is to the scheduler, and which notebook it is.
_OF_A_PERSON = (
    "JPY_SESSION_NAME",
    "JUPYTERHUB_API_TOKEN",
    "JUPYTERHUB_API_URL",
    "JUPYTERHUB_BASE_URL",
    "JUPYTERHUB_USER",
    "LANG",
    "LC_",
    "PAI_API_URL",
    "PAI_LOCALE",
    "PAI_TOKEN",
    "TZ",
)


def carried(environment: Mapping[str, str], *, same_image: bool, more: Iterable[str] = ()) -> dict[str, str]:
    """Choose what the kernel gets beside what its own task says.

    In the image of the server that is all but what only the server's task is; in another one (where a path
    means something else) who the person is, the language, and `more`.
    """
    wanted = frozenset(more)
    return {
        name: value
        for name, value in environment.items()
        if name in wanted
        or name.startswith(_OF_A_PERSON)
        or (same_image and name != "_" and not name.startswith(_OF_A_TASK))
    }
