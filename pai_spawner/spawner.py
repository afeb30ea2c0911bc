"""`PAISpawner`: starts, finds again, watches and stops a notebook server that is a job of the scheduler."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from jupyterhub.spawner import Spawner, SpawnException
from sqlalchemy.orm import object_session
from traitlets import Bool, Dict, Float, Integer, Unicode, default

from pai_scheduler.client import ApiError, Client, UnreachableError
from pai_scheduler.job.messages import Message, choose_locale
from pai_scheduler.wire import JobDetail

from .clients import client_for
from .following import (
    ENDED,
    LISTENING,
    RUNNING,
    Address,
    ServerFailed,
    address_of,
    exit_code_of,
    patiently,
    wait_until_ended,
    wait_until_listening,
    wait_until_running,
)
from .form import render_form
from .homes import prepare_home
from .messages import msg
from .options import InvalidOptions, Options, Policy, options_from_form, parse_options
from .server_job import new_job_name, server_job
from .supply import supply_of

#: Ten years: how long a server may wait in the queue is not the Hub's business.
_FOR_EVER = 10 * 365 * 24 * 3600


class ServerNotStarted(SpawnException):  # type: ignore[misc]  # jupyterhub has no types
    """Why a server does not start, in the person's own language, with the last lines of its log beside it."""

    def __init__(self, message: str, *, reason: str, log: str = "", status_code: int = 400) -> None:
        super().__init__(
            message, reason=reason, log_message=f"{message}\n{log}".strip(), status_code=status_code
        )
        # these two are what the Hub's pages show
        self.jupyterhub_message = f"{message}\n{log}".strip()
        if log:
            self.jupyterhub_html_message = (
                f"<p>{html.escape(message)}</p><pre class='text-start'>{html.escape(log)}</pre>"
            )


class PAISpawner(Spawner):  # type: ignore[misc]
    """Runs a user's notebook server as a job of the PAI scheduler.

    The server waits in the same queue, for the same CPUs and GPUs, as every other job. It lives on while the
    Hub or the scheduler is away, and is found again.
    """

    scheduler_url = Unicode(
        "http://127.0.0.1:9186", config=True, help="Where the Hub reaches the scheduler, without `/api/v1`."
    )
    scheduler_token = Unicode(
        config=True,
        help="The Hub's own token for the scheduler; its owner is an admin there (`--admin-service`).",
    )
    api_url = Unicode(
        config=True,
        help="""Where servers reach the scheduler: the Hub's public address with `/services/pai`.

        Handed on as `PAI_API_URL`. An engine whose tasks cannot reach that address (Docker) tells its own.
        """,
    )
    images = Dict(
        value_trait=Unicode(),
        key_trait=Unicode(),
        config=True,
        help="The images offered in the form: name shown → image. The first is the default.",
    )
    allow_any_image = Bool(False, config=True, help="Whether a person may type the name of an image.")
    default_cpus = Integer(1, min=1, config=True, help="CPUs of a server when nothing is chosen.")
    default_memory_mb = Integer(
        2048, min=256, config=True, help="Memory of a server in MB when nothing is chosen."
    )
    most_cpus = Integer(
        0, min=0, config=True, help="CPUs a server may have at most; 0: as many as a node has."
    )
    most_memory_mb = Integer(
        0, min=0, config=True, help="Memory in MB a server may have at most; 0: a node's."
    )
    most_gpus = Integer(
        0, min=0, config=True, help="GPUs a server may have at most; 0: as many as a node has."
    )
    shm_mb = Integer(512, min=1, config=True, help="Shared memory (/dev/shm) of a server in MB.")
    homes = Unicode(
        config=True,
        help="""Folder with one persistent folder per user, in which that user's servers work.

        For the process engine, whose tasks see this machine's files. Empty: a server works in its task's own
        scratch folder, or in its container's working folder.
        """,
    )
    tutorials = Unicode(
        config=True, help="Folder that is copied into a user's persistent folder as `tutorials`; empty: none."
    )
    launch_patience = Float(
        900.0,
        min=1,
        config=True,
        help="Seconds of silence, once the server has left the queue, until a start is given up.",
    )
    answer_patience = Float(
        120.0,
        min=1,
        config=True,
        help="Seconds a running server may take until it answers for the first time.",
    )
    stop_patience = Float(60.0, min=1, config=True, help="Seconds to wait for a stopped server's end.")

    job_name = ""
    #: what goes on, for `progress()`; every event is kept, as a page may be opened late
    _story: list[dict[str, Any]]
    _story_grew: asyncio.Event
    _starting = False
    _locale = "en"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._story, self._story_grew = [], asyncio.Event()

    @default("start_timeout")
    def _no_start_timeout(self) -> int:
        # the Hub counts from the click; `launch_patience` counts from the queue's end
        return _FOR_EVER

    @default("options_form")
    def _own_options_form(self) -> Any:
        return PAISpawner.options_page

    @default("options_from_form")
    def _own_options_from_form(self) -> Any:
        return options_from_form

    @default("apply_user_options")
    def _own_apply_user_options(self) -> Any:
        return PAISpawner.check_options

    @property
    def policy(self) -> Policy:
        """Give what this Hub lets people choose."""
        return Policy(
            self.images,
            self.allow_any_image,
            self.default_cpus,
            self.default_memory_mb,
            self.most_cpus,
            self.most_memory_mb,
            self.most_gpus,
        )

    # ── choosing ──────────────────────────────────────────────────────────────────────────────────

    async def options_page(self) -> str:
        """Render the form, with what is free now beside every choice."""
        self._take_locale()
        try:
            client = self._client()
            supply = supply_of(await client.nodes(), await client.virtual_clusters())
        except (UnreachableError, ApiError) as error:
            self.log.warning("the options form shows no numbers: %s", error)
            supply = None
        return render_form(self.policy, supply, self._last_options(), self._locale)

    def check_options(self, user_options: Mapping[str, Any]) -> None:
        """Refuse options that make no sense, from the form and from the REST API alike (status 400)."""
        self._take_locale()
        options = self._options(user_options)
        # told to the server as MEM_LIMIT and CPU_LIMIT, which Jupyter's resource displays read
        self.mem_limit = options.memory_mb * 1024 * 1024
        self.cpu_limit = float(options.cpus)

    def _options(self, user_options: Mapping[str, Any]) -> Options:
        try:
            return parse_options(user_options, self.policy)
        except InvalidOptions as error:
            raise ServerNotStarted(error.in_locale(self._locale), reason="options") from error

    def _last_options(self) -> Options:
        """Give what was chosen last time, where that is still possible."""
        stored = self.orm_spawner.user_options if self.orm_spawner else None
        try:
            return parse_options(stored or {}, self.policy)
        except InvalidOptions:
            return self.policy.defaults

    # ── starting ──────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> tuple[str, int]:
        """Submit the server's job and wait until the server answers; gives its (ip, port)."""
        self._take_locale()
        self._starting = True
        try:
            options = self._options(self.user_options)
            self.job_name = new_job_name(self.name)
            # known before the scheduler knows it: a Hub that dies now finds the job again
            self._store_state()
            await self._submit(options)
            address = await self._follow()
        except ServerFailed as error:
            raise ServerNotStarted(
                error.message.in_locale(self._locale), reason=error.reason, log=error.log, status_code=500
            ) from error
        except ApiError as error:
            raise ServerNotStarted(error.message, reason=error.code, status_code=error.status) from error
        except UnreachableError as error:
            message = msg("The scheduler does not answer. Try again in a minute, or tell your administrator.")
            raise ServerNotStarted(
                message.in_locale(self._locale), reason="unreachable", status_code=503
            ) from error
        finally:
            self._starting = False
        return address.ip, address.port

    async def _submit(self, options: Options) -> None:
        client = self._client()
        about = await patiently(client.about, patience=self.stop_patience)
        config = server_job(
            self.job_name,
            self.name,
            options,
            self._task_env(about.get("frontDoor")),
            command=[*self.cmd, *self.get_args()],
            address=self.ip,
            shm_mb=self.shm_mb,
        )
        verdict = await client.validate(config)
        if verdict["errors"]:
            raise ServerNotStarted(
                " ".join(error["message"] for error in verdict["errors"]), reason="options"
            )
        if verdict["fits"] == "never":
            raise ServerNotStarted(verdict["reason"], reason="never-fits")
        self._tell(msg("Asking the scheduler for {what}.", what=_describe(options)), None)
        try:
            await patiently(partial(client.submit, config, user=self.user.name), patience=self.stop_patience)
        except ApiError as error:
            # an answer that got lost on its way: the job is there, and its name is nobody else's
            if error.code != "ConflictJobError":
                raise

    async def _follow(self) -> Address:
        client = self._client()
        user, job = self.user.name, self.job_name
        address = await wait_until_running(client, user, job, self._tell, patience=self.launch_patience)
        self._tell(msg("The server runs; waiting for its first answer."), RUNNING)
        await wait_until_listening(client, user, job, address, patience=self.answer_patience)
        self._tell(msg("The server answers."), LISTENING)
        return address

    def _task_env(self, front_door: str | None) -> dict[str, str]:
        """Write the environment of the server: how it finds the Hub and the scheduler."""
        api_url = self.api_url
        if front_door:
            self.hub_connect_url = front_door
            api_url = front_door.rstrip("/") + self.hub.base_url.removesuffix("hub/") + "services/pai"
        if self.homes:
            self.notebook_dir = str(prepare_home(self.homes, self.user.name, self.tutorials))
        env = {key: str(value) for key, value in self.get_env().items() if value is not None}
        env["PAI_API_URL"] = api_url
        if self.homes:
            # Jupyter's settings, and a shell's, belong to the person, not to the machine's account
            env["HOME"] = self.notebook_dir
        # made by the task itself, as only the task knows its port
        env.pop("JUPYTERHUB_SERVICE_URL", None)
        return env

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell what goes on: place in the queue, image pull, start."""
        told = 0
        while True:
            grew = self._story_grew
            while told < len(self._story):
                yield self._story[told]
                told += 1
            await grew.wait()

    # ── watching and stopping ─────────────────────────────────────────────────────────────────────

    async def poll(self) -> int | None:
        """None while the server waits or runs, else its exit status.

        A scheduler that cannot be reached says nothing about the server: it counts as running.
        """
        if not self.job_name:
            return 0
        try:
            detail = await self._client().job(self.user.name, self.job_name)
        except UnreachableError:
            return None
        except ApiError as error:
            if error.status == 404:
                return None if self._starting else 0
            self.log.error("the scheduler does not tell about %s: %s", self.job_name, error)
            return None
        if detail["jobStatus"]["state"] in ENDED:
            return exit_code_of(detail)
        self._take_address(detail)
        return None

    def _take_address(self, detail: JobDetail) -> None:
        """Follow a server that the platform started again elsewhere; the Hub renews its route itself."""
        if detail["jobStatus"]["state"] != "RUNNING" or not self.server or self._starting:
            return
        address = address_of(detail)
        if address is not None and (self.server.ip, self.server.port) != (address.ip, address.port):
            self.server.ip, self.server.port = address.ip, address.port

    async def get_url(self) -> str:
        """Give the server's address as the scheduler knows it, for a Hub that was away during the start."""
        try:
            address = address_of(await self._client().job(self.user.name, self.job_name))
        except (UnreachableError, ApiError):
            address = None
        return f"http://{address.ip}:{address.port}" if address else str(self.server.url)

    async def stop(self, now: bool = False) -> None:
        """Stop the server's job and wait for its end."""
        if not self.job_name:
            return
        client, user = self._client(), self.user.name
        try:
            await patiently(partial(client.stop, user, self.job_name), patience=self.stop_patience)
        except ApiError as error:
            if error.status != 404:
                raise
            return
        if not now:
            await wait_until_ended(client, user, self.job_name, patience=self.stop_patience)

    # ── remembering ───────────────────────────────────────────────────────────────────────────────

    def get_state(self) -> dict[str, Any]:
        """Give what a restarted Hub needs: the job's name, and the person's language."""
        state: dict[str, Any] = super().get_state()
        if self.job_name:
            state |= {"job_name": self.job_name, "locale": self._locale}
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up a server that was started by an earlier Hub."""
        super().load_state(state)
        self.job_name = state.get("job_name", "")
        self._locale = state.get("locale", "en")

    def clear_state(self) -> None:
        """Forget the server that was."""
        super().clear_state()
        self.job_name = ""
        self._story = []

    def _store_state(self) -> None:
        """Write the state now; the Hub itself does so only after `start` has returned."""
        self.orm_spawner.state = self.get_state()
        session = object_session(self.orm_spawner)
        if session is not None:
            session.commit()

    # ── talking ───────────────────────────────────────────────────────────────────────────────────

    def _client(self) -> Client:
        return client_for(self.scheduler_url, self.scheduler_token, self._locale)

    def _tell(self, message: str | Message, percent: int | None) -> None:
        text = message.in_locale(self._locale) if isinstance(message, Message) else message
        self._story.append({"message": text} if percent is None else {"message": text, "progress": percent})
        grew, self._story_grew = self._story_grew, asyncio.Event()
        grew.set()

    def _take_locale(self) -> None:
        """Speak the language of the browser that asks, where one does."""
        if self.handler is not None:
            self._locale = choose_locale(self.handler.request.headers.get("Accept-Language", ""))


def _describe(options: Options) -> Message:
    if not options.gpus:
        return msg("{cpus} CPUs and {memory} MB of memory", cpus=options.cpus, memory=options.memory_mb)
    return msg(
        "{cpus} CPUs, {memory} MB of memory and {gpus} × {type}",
        cpus=options.cpus,
        memory=options.memory_mb,
        gpus=options.gpus,
        type=options.gpu_type or msg("any GPU"),
    )
