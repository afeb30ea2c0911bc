"""`PAISpawner`: starts, finds again, watches and stops a notebook server that is a job of the scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from jupyterhub.handlers.pages import SpawnHandler
from jupyterhub.spawner import Spawner
from sqlalchemy.orm import object_session
from traitlets import default

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message, choose_locale
from pai_scheduler.job.exit_codes import STOPPED_BY_USER
from pai_scheduler.own_packages import OwnPackages
from pai_scheduler.rest.models import JobDetail

from .clients import client_for
from .messages import Translated, msg
from .options import (
    OPENS_FIRST,
    URL,
    InvalidOptions,
    Offer,
    Options,
    Profile,
    ProfileService,
    options_from_form,
    parse_options,
)
from .options_form import render_form
from .profiles import offer_to, read_profiles
from .server_job import SINGLEUSER, new_job_name, prepare_home, server_job
from .sessions.policy import Session, refusal
from .sessions.policy_file import PolicyError, PolicySource
from .settings import SpawnerSettings
from .start_preview import (
    StartPreview,
    Supply,
    answer_to,
    describe,
    limited,
    refusal_of,
    supply_of,
    unreachable,
    wrong_options,
)
from .startup import (
    LISTENING,
    RUNNING,
    ServerAddress,
    ServerFailed,
    address_of,
    exit_code_if_over,
    patiently,
    reach,
    wait_until_listening,
    wait_until_running,
    wait_until_serving,
)
from .termination import (
    End,
    PendingStops,
    ServerEnd,
    ServerNotStarted,
    ending_of_start,
    not_started,
    note_stop,
    now_ms,
    read_ending,
)

#: Ten years: how long a server may wait in the queue is not the Hub's business.
_FOR_EVER = 10 * 365 * 24 * 3600
#: what the Hub is told of a server whose start was cancelled; any number but None would do
_CANCELLED = 1
#: a job that is only asked about has a name that no server's has
_NAME_OF_A_QUESTION = "notebook"


class PAISpawner(SpawnerSettings, Spawner):  # type: ignore[misc]  # jupyterhub has no types
    """Runs a user's notebook server as a job of the PAI scheduler.

    The server waits in the same queue, for the same CPUs and GPUs, as every other job. It lives on while the
    Hub or the scheduler is away, and is found again; a start outlives the Hub too, and can be cancelled at
    any moment.
    """

    job_name = ""
    #: GPUs that the server has, or asks for
    gpus = 0
    #: what the service is called that opens in the server instead of JupyterLab; None: nothing does
    service_title: Translated | None = None
    #: what goes on, for `progress()`; every event is kept, as a page may be opened late
    _progress: list[dict[str, Any]]
    _progress_grew: asyncio.Event
    _starting = False
    #: the server has answered once: its start is over
    _answered = False
    #: the job has ended, or is being stopped
    _over = False
    #: how the last server ended; kept until the next start
    ending: ServerEnd | None = None
    #: what was chosen and refused, to be shown again; on the user's default server, whose form the Hub shows
    rejected: Mapping[str, Any] | None = None
    #: the language of whoever chooses or starts
    _locale = "en"
    #: the Hub's own, which its pages and its REST API read
    _spawn_future: asyncio.Future[None] | None = None
    _spawn_pending: bool
    _check_pending: bool
    _watched = False
    #: set while a cancelled start, taken up from an earlier Hub, waits for the Hub to stop it
    _cleared: asyncio.Event | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._progress, self._progress_grew = [], asyncio.Event()
        super().__init__(*args, **kwargs)
        self._stops = PendingStops(self._client, lambda: self.user.name, self._store_state, self.log)

    @default("start_timeout")
    def _no_start_timeout(self) -> int:
        # the Hub counts from the click; `launch_patience` counts from the queue's end
        return _FOR_EVER

    @default("cmd")
    def _own_server(self) -> list[str]:
        return [SINGLEUSER]

    @default("options_form")
    def _own_options_form(self) -> Any:
        return PAISpawner.options_page

    @default("options_from_form")
    def _own_options_from_form(self) -> Any:
        return options_from_form

    @default("apply_user_options")
    def _own_apply_user_options(self) -> Any:
        return PAISpawner.check_options

    # ── choosing ──────────────────────────────────────────────────────────────────────────────────

    async def options_page(self) -> str:
        """Render the form, with what is free now beside every choice."""
        self._take_locale()
        return await self.form_in(self._locale)

    def check_options(self, user_options: Mapping[str, Any]) -> None:
        """Refuse options that make no sense, from the form and from the REST API alike (status 400)."""
        self._take_locale()
        options = self.read_options(user_options, self._locale)
        # told to the server as MEM_LIMIT and CPU_LIMIT, which Jupyter's resource displays read
        self.mem_limit = options.memory_mb * 1024 * 1024
        self.cpu_limit = float(options.cpus)

    @cached_property
    def _profiles(self) -> tuple[Profile, ...]:
        return read_profiles(self.profiles, self.policy)

    @property
    def offer(self) -> Offer:
        """Return what this server's user may choose."""
        groups = {group.name for group in self.user.groups}
        return offer_to(self._profiles, groups, self.policy)

    def read_options(self, raw: Mapping[str, Any], locale: str) -> Options:
        """Check what was chosen; raises `ServerNotStarted` in the person's language."""
        try:
            return parse_options(raw, self.offer)
        except InvalidOptions as error:
            self._show_again(raw)
            raise ServerNotStarted(error.in_locale(locale), reason="options") from error

    def last_options(self) -> Mapping[str, Any]:
        """Return what was chosen last time, where that is still possible, or was refused just now."""
        if self.rejected is not None:
            return self.rejected
        stored = self.orm_spawner.user_options if self.orm_spawner else None
        try:
            return parse_options(stored or {}, self.offer).to_json()
        except InvalidOptions:
            return {}

    def job_of(self, name: str, options: Options, env: Mapping[str, str]) -> dict[str, Any]:
        """Return the job that a server with these options is."""
        service = self.service_of(options)
        return server_job(
            name,
            self.name,
            options,
            {**env, OPENS_FIRST: URL} if service else env,
            command=[*self.cmd, *self.get_args(), *(service.arguments(self._locale) if service else ())],
            address=self.ip,
            home=self.home_in_container,
            tutorials=self.tutorials,
            shared_folders=self._shared_folders_of(options),
        )

    def service_of(self, options: Options) -> ProfileService | None:
        """Return what opens in a server with these options instead of JupyterLab."""
        profile = self.offer.find(options.profile)
        return profile.service if profile else None

    def _shared_folders_of(self, options: Options) -> Sequence[str]:
        profile = self.offer.find(options.profile)
        if profile is not None and profile.shared_folders is not None:
            return profile.shared_folders
        return tuple(self.shared_folders)

    async def check_with_scheduler(self, client: Client, config: Mapping[str, Any]) -> None:
        """Refuse a server that the scheduler would refuse, or that would never start."""
        verdict = await client.validate(config, user=self.user.name)
        if (reason := refusal_of(verdict)) is not None:
            self._show_again(self.user_options)
            kind = "options" if verdict["errors"] else "never-fits"
            raise ServerNotStarted(reason, reason=kind)

    def _show_again(self, raw: Mapping[str, Any]) -> None:
        """Keep what was refused for the form that the Hub shows next, which is the default server's."""
        if isinstance(self.handler, SpawnHandler):
            self.user.spawner.rejected = dict(raw)

    async def answer(self, raw: Mapping[str, Any], locale: str) -> StartPreview:
        """Say what a start with these options would do; nothing is started or kept."""
        offer = self.offer
        try:
            options = parse_options(raw, offer)
        except InvalidOptions as error:
            return wrong_options(error.problems)
        if (limit := limit_refusal(self, options)) is not None:
            return limited(options, limit)
        client = self.scheduler(locale)
        try:
            question = self.job_of(_NAME_OF_A_QUESTION, options, {})
            verdict, available = await asyncio.gather(
                client.validate(question, user=self.user.name), client.available(self.user.name)
            )
        except (UnreachableError, ApiError) as error:
            self.log.warning("nobody says whether a server would start: %s", error)
            return unreachable(options)
        return answer_to(options, verdict, available, offer)

    async def form_in(self, locale: str) -> str:
        """Render the form, with what is free now beside every choice."""
        offer, chosen = self.offer, self.last_options()
        self.rejected = None
        supply = await self._supply(locale)
        answer = await self.answer(chosen, locale) if supply is not None and offer.profiles else None
        title = self.orm_spawner.display_name or self.name if self.name and self.orm_spawner else ""
        address = f"{self.user.name}/{self.name}" if self.name else str(self.user.name)
        return render_form(offer, supply, chosen, locale, answer=answer, address=address, server=title)

    async def _supply(self, locale: str) -> Supply | None:
        client = self.scheduler(locale)
        try:
            return supply_of(
                *await asyncio.gather(
                    client.nodes(), client.virtual_clusters(), client.available(self.user.name)
                )
            )
        except (UnreachableError, ApiError) as error:
            self.log.warning("the options form shows no numbers: %s", error)
            return None

    # ── starting ──────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> tuple[str, int]:
        """Submit the server's job and wait until the server answers; gives its (ip, port)."""
        self._take_locale()
        self._starting, self.ending = True, None
        try:
            with self._problems_told():
                options = self.read_options(self.user_options, self._locale)
                if (limit := limit_refusal(self, options)) is not None:
                    raise ServerNotStarted(limit.in_locale(self._locale), reason="limit", status_code=403)
                self.job_name, self.gpus = new_job_name(self.name), options.gpus
                service = self.service_of(options)
                self.service_title = service.title if service else None
                # known before the scheduler knows it: a Hub that dies now finds the job again
                self._store_state()
                await self._submit(options)
                address = await self._follow()
        finally:
            self._starting = False
        self._answered = True
        return address.ip, address.port

    @contextlib.contextmanager
    def _problems_told(self) -> Iterator[None]:
        """Put what goes wrong with a start into words, for the page that waits and for later."""
        try:
            yield
        except ServerNotStarted as error:
            self.ending = ending_of_start(error, self._locale)
            raise
        except (ServerFailed, ApiError, UnreachableError) as error:
            self.ending = ending_of_start(error, self._locale)
            raise not_started(error, self._locale) from error

    async def _submit(self, options: Options) -> None:
        client = self._client()
        about = await patiently(client.about, patience=self.stop_patience)
        env = await self._task_env(about.get("frontDoor"))
        config = self.job_of(self.job_name, options, env)
        await self.check_with_scheduler(client, config)
        what = describe(
            cpus=options.cpus, memory_mb=options.memory_mb, gpus=options.gpus, gpu_type=options.gpu_type
        )
        self._tell(msg("Asking the scheduler for {what}.", what=what), None)
        try:
            await patiently(partial(client.submit, config, user=self.user.name), patience=self.stop_patience)
        except ApiError as error:
            # an answer that got lost on its way: the job is there, and its name is nobody else's
            if error.code != "ConflictJobError":
                raise

    async def _follow(self) -> ServerAddress:
        client = self._client()
        user, job = self.user.name, self.job_name
        address = await wait_until_running(client, user, job, self._tell, patience=self.launch_patience)
        address = await reach(client, user, job, address)
        self._tell(msg("The server runs; waiting for its first answer."), RUNNING, waiting=False)
        await wait_until_listening(client, user, job, address, patience=self.answer_patience)
        if self.service_title is not None:
            await wait_until_serving(
                *(client, user, job, address),
                base_url=self.server.base_url,
                title=self.service_title,
                tell=self._tell,
                patience=self.answer_patience,
            )
        self._tell(msg("The server answers."), LISTENING)
        return address

    async def _task_env(self, front_door: str | None) -> dict[str, str]:
        """Write the environment of the server: how it finds the Hub and the scheduler."""
        api_url, sessions_url = self.api_url, self.sessions_url
        if front_door:
            self.hub_connect_url = front_door
            services = front_door.rstrip("/") + self.hub.base_url.removesuffix("hub/") + "services/"
            api_url, sessions_url = services + "pai", sessions_url and services + "pai-sessions"
        if self.homes:
            home = await asyncio.to_thread(prepare_home, self.homes, self.user.name, self.tutorials)
            self.notebook_dir = str(home)
            packages = await asyncio.to_thread(self._own_packages, home)
        env = {key: str(value) for key, value in self.get_env().items() if value is not None}
        env["PAI_API_URL"] = api_url
        if sessions_url:
            env["PAI_SESSIONS_URL"] = sessions_url
        if self.homes:
            # Jupyter's settings, and a shell's, belong to the person, not to the machine's account
            env["HOME"] = self.notebook_dir
            # who comes in by SSH has the packages that the server's terminals have
            env |= packages.variables({**os.environ, **env})
        if self.home_in_container:
            env["HOME"] = self.home_in_container  # whatever the image says
        if "HOME" in env:
            # who logs in begins where the server itself works, among the person's files
            env["PAI_WORK_DIR"] = env["HOME"]
        # made by the task itself, as only the task knows its port
        env.pop("JUPYTERHUB_SERVICE_URL", None)
        return env

    def _own_packages(self, home: Path) -> OwnPackages:
        """Return the person's own packages in a home on this machine, which the server finds made."""
        packages = OwnPackages.in_home(home)
        try:
            packages.make()
        except OSError as error:
            self.log.warning("There are no packages of %s's own: %s", self.user.name, error)
        return packages

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Return what goes on: place in the queue, image pull, start."""
        told = 0
        while True:
            grew = self._progress_grew
            while told < len(self._progress):
                yield self._progress[told]
                told += 1
            await grew.wait()

    # ── watching and stopping ─────────────────────────────────────────────────────────────────────

    @property
    def ready(self) -> bool:
        """Return whether the server can be used: the Hub watches it, which is the last step of every start.

        JupyterHub itself takes every server that has an address and for which nothing is pending for a ready
        one. A start that is cancelled looks like that until its stop begins, a second later: pages would be
        told that it is ready, and sent in circles.
        """
        return self._watched and bool(super().ready)

    def add_poll_callback(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Watch the server from now on; called by the Hub when a start is over."""
        self._watched = True
        super().add_poll_callback(callback, *args, **kwargs)

    async def poll(self) -> int | None:
        """None while the server waits or runs, else its exit status.

        A scheduler that cannot be reached says nothing about the server: it counts as running.
        """
        if not self.job_name:
            return 0
        if self.job_name in self._stops:
            return STOPPED_BY_USER
        if self._check_pending and not self._answered:
            return await self.resume(self._resume)
        try:
            detail = await self._client().job(self.user.name, self.job_name)
        except UnreachableError:
            return None
        except ApiError as error:
            if error.status == 404:
                if self._starting:
                    return None
                await self._note_end()
                return 0
            self.log.error("the scheduler does not tell about %s: %s", self.job_name, error)
            return None
        if (exit_code := exit_code_if_over(detail)) is not None:
            await self._note_end()
            return exit_code
        await self._take_address(detail)
        return None

    async def _note_end(self) -> None:
        """Keep why the job has ended, once."""
        self._over = True
        if self.ending is None:
            ending = await read_ending(self.scheduler, self.user.name, self.job_name, now_ms())
            # a start may be cancelled before the scheduler knows of it
            never_was = ending.kind is End.GONE and not self._answered
            self.ending = ServerEnd(End.CANCELLED, ending.time) if never_was else ending

    async def _take_address(self, detail: JobDetail) -> None:
        """Follow a server that the platform started again elsewhere; the Hub renews its route itself."""
        if detail["jobStatus"]["subState"] != "RUNNING" or not self.server or self._starting:
            return
        address = address_of(detail)
        if address is not None:
            with contextlib.suppress(UnreachableError, ApiError):
                address = await reach(self._client(), self.user.name, self.job_name, address)
        if address is not None and (self.server.ip, self.server.port) != (address.ip, address.port):
            self.server.ip, self.server.port = address.ip, address.port
            if (proxy := self.user.settings.get("proxy")) is not None and self.ready:
                # the Hub would see to that within minutes
                await proxy.add_user(self.user, self.name)

    async def get_url(self) -> str:
        """Return the server's address as the scheduler knows it, for a Hub that was away during the start."""
        try:
            client = self._client()
            address = address_of(await client.job(self.user.name, self.job_name))
            if address is not None:
                address = await reach(client, self.user.name, self.job_name, address)
        except (UnreachableError, ApiError):
            address = None
        if address is None:
            return str(self.server.url)
        return f"http://{address.ip}:{address.port}{self.server.base_url}"

    async def stop(self, now: bool = False) -> None:
        """Stop the server's job and wait for its end.

        The Hub forgets a server even when this fails. So a job that could not be stopped, because nobody
        answered, is remembered, and stopped as soon as somebody does.
        """
        if not self.job_name:
            return
        self._over = True
        if self.ending is None:
            self.ending = ServerEnd(End.STOPPED if self._watched else End.CANCELLED, now_ms())
            # the Hub stops it for others, too, who have said to the scheduler why
            self.ending = await note_stop(self.ending, self.scheduler, self.user.name, self.job_name)
        await self._stops.stop(self.job_name, wait=not now, patience=self.stop_patience)

    # ── taking up a start that a Hub did not live to see the end of ───────────────────────────────────

    async def resume(self, follow: Callable[[Callable[[], None]], Awaitable[None]]) -> int | None:
        """Go on with a start in sight of the Hub's pages; returns when the server answers or has failed.

        `follow` does the work; it calls what it is given when the server answers, and may go on after that.

        The Hub asks for a server's status once when it starts, and would take a server that still waits in
        the queue for a broken one. While the answer is held back, the server counts as pending, as it is.
        """
        answers = asyncio.Event()

        def answered() -> None:
            # from here on only the Hub's check is pending, so that the route is made right after it
            self._spawn_pending = False
            answers.set()

        start = asyncio.ensure_future(follow(answered))

        def over(done: asyncio.Future[None]) -> None:
            self._spawn_pending = False
            if done.cancelled():
                # the Hub stops no server for which something is pending; it does so in a second
                self._check_pending, self._cleared = False, asyncio.Event()
            if done.cancelled() or done.exception() is None:
                self._spawn_future = None
            answers.set()

        self._spawn_future, self._spawn_pending = start, True
        start.add_done_callback(over)
        await answers.wait()
        if self._cleared is not None:
            # an answer would make the Hub forget the server before it has stopped it
            await self._cleared.wait()
            self._cleared = None
            return _CANCELLED
        return _CANCELLED if start.done() else None

    async def _resume(self, answered: Callable[[], None]) -> None:
        self._tell(msg("The Hub was started anew; going on with the start of your server."), None)
        with self._problems_told():
            await self._follow()
        self._answered = True
        self._store_state()
        answered()
        # the Hub's progress page takes the end of this for the server's being ready, which the Hub itself
        # only believes after its check
        while self._check_pending:  # noqa: ASYNC110 - the Hub's own flag, which tells nobody
            await asyncio.sleep(0.1)

    # ── remembering ───────────────────────────────────────────────────────────────────────────────

    def get_state(self) -> dict[str, Any]:
        """Return what a restarted Hub needs: the job's name, and the person's language."""
        state: dict[str, Any] = super().get_state()
        if self.job_name:
            state |= {"job_name": self.job_name, "locale": self._locale, "answered": self._answered}
            state["gpus"] = self.gpus
            if self.service_title is not None:
                state["service"] = self.service_title.as_json()
        if self.ending is not None:
            state["ending"] = self.ending.as_json()
        if self._stops.jobs:
            state["to_stop"] = list(self._stops.jobs)
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up a server that was started by an earlier Hub."""
        super().load_state(state)
        self.job_name = state.get("job_name", "")
        self._locale = state.get("locale", "en")
        self._answered, self.gpus = state.get("answered", False), state.get("gpus", 0)
        self.service_title = Translated.read(state["service"]) if state.get("service") else None
        self.ending = ServerEnd.from_json(state.get("ending"))
        self._stops.restore(state.get("to_stop", ()))

    def clear_state(self) -> None:
        """Forget the server that was, but for how it ended."""
        super().clear_state()
        self._watched = False
        if self._cleared is not None:
            self._cleared.set()
        forgotten = self.job_name if not self._over else ""
        self.job_name, self.gpus, self._answered, self._over = "", 0, False, False
        self.service_title = None
        self._progress = []
        if forgotten:
            # the Hub could not ask, or starts another while this one is being cancelled
            self._stops.add(forgotten)
            self._stops.later()

    def _store_state(self) -> None:
        """Write the state now; the Hub itself does so only after `start` has returned."""
        self.orm_spawner.state = self.get_state()
        session = object_session(self.orm_spawner)
        if session is not None:
            session.commit()

    # ── talking ───────────────────────────────────────────────────────────────────────────────────

    def scheduler(self, locale: str) -> Client:
        """Return the client of the scheduler, in a language."""
        return client_for(self.scheduler_url, self.scheduler_token, locale)

    def _client(self) -> Client:
        return self.scheduler(self._locale)

    def _tell(
        self,
        message: str | Message,
        percent: int | None,
        /,
        *,
        waiting: bool | None = None,
        place: int | None = None,
        starts: Message | None = None,
        again: bool = False,
    ) -> None:
        text = message.in_locale(self._locale) if isinstance(message, Message) else message
        facts = {
            "progress": percent,
            "waiting": waiting,
            "place": place,
            "starts": None if starts is None else starts.in_locale(self._locale),
            "again": again or None,
        }
        self._progress.append(
            {"message": text, **{name: fact for name, fact in facts.items() if fact is not None}}
        )
        grew, self._progress_grew = self._progress_grew, asyncio.Event()
        grew.set()

    def _take_locale(self) -> None:
        """Speak the language of the browser that asks, where one does."""
        if self.handler is not None:
            self._locale = choose_locale(self.handler.request.headers.get("Accept-Language", ""))


def limit_refusal(spawner: PAISpawner, options: Options) -> Message | None:
    """Return why a server with such options may not start now; None: it may.

    Nothing is waited for in here: until the spawner that asks has a job's name, no other one is let pass.
    """
    if not spawner.sessions_file:
        return None
    try:
        policy = _source(spawner.sessions_file).refresh().policy
    except PolicyError as error:
        return error.message
    session = _session(spawner, options.gpus, options.profile)
    return refusal(policy, session, list(_others(spawner)), datetime.now(UTC))


@cache
def _source(path: str) -> PolicySource:
    return PolicySource(Path(path))


def _others(spawner: PAISpawner) -> Iterator[Session]:
    """Return the sessions of all users that run, or are being started, in this Hub."""
    everybody = spawner.user.settings.get("users")
    users = list(everybody.values()) if everybody is not None else [spawner.user]
    for user in users:
        for other in user.spawners.values():
            if other is not spawner and other.active and getattr(other, "job_name", ""):
                yield _session(other, other.gpus, str((other.user_options or {}).get("profile") or ""))


def _session(spawner: PAISpawner, gpus: int, profile: str) -> Session:
    groups = frozenset(group.name for group in spawner.user.groups)
    return Session(spawner.user.name, spawner.name, groups, gpus, profile)
