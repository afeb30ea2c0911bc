"""Answers of the notebook server's own routes, as types; the front end's types are made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from pai_scheduler.rest.models import SshGateway, about
from pai_scheduler.rest.webhdfs import RemoteException


class Refusal(TypedDict, total=False):
    """Why something was refused, and by whom: this server, the scheduler, its storage, Jupyter."""

    code: Annotated[str, about("For programs")]
    message: Annotated[str, about("For people")]
    RemoteException: RemoteException


class MemoryInfo(TypedDict):
    """What limits the memory of this server, with all that runs in it."""

    limitMB: Annotated[int | None, about("null: there is none, or it is not known")]
    lost: Annotated[bool, about("Whether the last end of the kernel that was asked about was for it")]


class Address(TypedDict):
    """Where something listens."""

    host: str
    port: int


class PortLink(TypedDict):
    """A port of a task, and where a browser finds it."""

    label: str
    port: int
    url: str


class ConnectInfo(TypedDict):
    """What there is to know about reaching a task."""

    user: str
    job: str
    task: Annotated[str, about('Role and index, as "worker-0"')]
    login: Annotated[str, about("By which one logs in at the gateway")]
    gateway: SshGateway | None
    published: Annotated[Address | None, about("Its own SSH server, where the administrator publishes it")]
    off: Annotated[str | None, about("Why there is no way in; null: there is one")]
    workDir: str
    python: Annotated[str, about("Path of the Python that commands in it find; empty where there is none")]
    ports: list[PortLink]
    isolated: Annotated[bool, about("False: without a container's isolation")]


class ConnectCheck(TypedDict):
    """What trying a connection came to."""

    ok: bool
    message: str
    milliseconds: int


class CodeServerInfo(TypedDict):
    """Where code-server is."""

    url: Annotated[str, about("Absolute, or below the notebook server's address")]


class TerminalInfo(TypedDict):
    """A terminal in a task, as jupyter_server_terminals describes one."""

    name: str
    last_activity: Annotated[str, about("As ISO 8601 has it")]


class KernelState(TypedDict):
    """A kernel that is a job."""

    id: str
    name: Annotated[str, about("Of its kernelspec")]
    job: str
    user: str
    phase: Annotated[Literal["waiting", "starting", "running", "lost", "ended"], about("lost: it runs on")]
    reason: Annotated[str, about("Why it is not running; empty where it is")]
    place: Annotated[int | None, about("In the queue, from 1; null: in none")]
    idleLimit: Annotated[int, about("Seconds without use after which it ends; 0: never")]
    idleLeft: Annotated[int | None, about("Of these, what is left; null: it is at work, or has no limit")]
    deaths: Annotated[int, about("How often its process has died")]
    death: Annotated[str, about("Why it died the last time; empty where it never did")]
    log: Annotated[str, about("The last lines that its task wrote, where they say why it has ended")]


class KernelStates(TypedDict):
    """The kernels of a notebook server that are jobs, those at the end that have ended by themselves."""

    kernels: list[KernelState]


class CodeFile(TypedDict):
    """A file that would go along."""

    name: str
    length: Annotated[int, about("Bytes")]


class CodePlan(TypedDict):
    """What would go along with a job."""

    jobName: str
    folder: Annotated[str, about("Where the code goes in the storage")]
    include: list[str]
    exclude: list[str]
    generateName: bool
    files: list[CodeFile]


class RunPlan(TypedDict):
    """What running a file as a job would do, and what there is to choose."""

    kind: Literal["notebook", "python", "shell"]
    name: Annotated[str, about("Of the job, without the characters that make it new")]
    image: str
    images: Annotated[list[str], about("Used before, newest first")]
    imageNeeded: Annotated[bool, about("False: tasks have no container")]
    virtualCluster: str
    virtualClusters: Annotated[list[str], about("Open to the user")]
    gpuTypes: dict[str, Annotated[int, about("The most on one machine")]]
    cpus: int
    memoryMB: int
    parameters: Annotated[dict[str, str], about("Of the notebook, as Python writes their values")]
    results: Annotated[str, about("The folder of the storage")]
    include: list[str]
    exclude: list[str]
    files: list[CodeFile]
    fits: Annotated[Literal["now", "later", "never", ""], about("Empty: nobody could be asked")]
    sentences: Annotated[list[str], about("What is wrong, or when it would start")]
    times: Annotated[list[int], about("When its schedule is due next, ms since the epoch; empty: none")]


class SubmitProgress(TypedDict):
    """How far the code is."""

    files: int
    filesTotal: int
    bytes: int
    bytesTotal: int


class SubmittedJob(TypedDict):
    """The job that was submitted, or the schedule that was made."""

    name: str
    username: str


class SubmitLine(TypedDict, total=False):
    """A line about a submission; one of these."""

    progress: SubmitProgress
    error: Refusal
    job: SubmittedJob


class JobTemplate(TypedDict):
    """A job to begin with."""

    name: Annotated[str, about("Of its file; what its jobs are called")]
    title: str
    description: Annotated[str, about("What it does, and what to change")]
    config: dict[str, Any]


class JobEditorInfo(TypedDict):
    """What the job editor is made from."""

    jobSchema: Annotated[dict[str, Any], about("With titles and descriptions in the reader's language")]
    templates: list[JobTemplate]
    images: Annotated[list[str], about("Those of the person's last jobs, newest first")]
    imageNeeded: Annotated[bool, about("False where tasks run without containers")]
