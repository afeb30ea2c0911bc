"""`pai submit`: a job from a file, with the code beside it where its folder's settings say so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pai_scheduler.client.storage.code import CodeError, CodeSettings, carry_out, prepare, read_settings
from pai_scheduler.client.storage.transfer import amount
from pai_scheduler.job.json_text import LONGEST_JSONC

from .jobs import watch
from .session import OK, CliSession, printable_lines, read_job_text, shown_progress


async def submit(
    session: CliSession,
    *,
    file: str,
    watch_it: bool,
    user: str | None,
    after: Sequence[str | Mapping[str, str]] | None,
    code: str | None,
    no_code: bool,
    include: Sequence[str] | None,
    exclude: Sequence[str] | None,
    generate_name: bool,
) -> int:
    """Submit a job, and with `--watch` see it through."""
    written, text = await asyncio.to_thread(read_job_text, file)
    config = _with_after(written, after or ())
    folder = Path(code) if code is not None else Path() if file == "-" else Path(file).parent
    settings = await asyncio.to_thread(
        _settings, folder, reads=code is not None or file != "-", no_code=no_code
    )
    wanted = not no_code and (settings.enabled or code is not None or bool(include) or bool(exclude))
    settings = replace(
        settings,
        enabled=wanted,
        include=include or settings.include,
        exclude=exclude or settings.exclude,
        generate_name=generate_name or settings.generate_name,
    )
    prepared = await prepare(session.client, session.files, config, folder, settings, user=user)
    # (kept with its comments where it is submitted as it stands)
    kept = text if prepared.config is written and len(text) <= LONGEST_JSONC else None
    deliver = partial(session.client.submit, user=user, text=kept)
    with shown_progress(session.locale) as tell:
        name, sent = await carry_out(
            session.client, session.files, prepared, folder, tell, user=user, deliver=deliver
        )
    if prepared.code is not None and not session.as_json:
        session.say(
            "Code in {folder}. Files transferred: {files} ({length}); there already: {same}.",
            folder=prepared.code_folder,
            files=sent.files,
            length=amount(sent.length),
            same=sent.same + sent.copied,
        )
    elif config.get("codeDir") and not no_code and not session.as_json:
        session.say(
            "No code was sent: no .pai/settings.json beside the job asks for it. --code FOLDER sends it."
        )
    return await _follow(session, name, user, watch_it=watch_it)


def _with_after(config: dict[str, Any], after: Sequence[str | Mapping[str, str]]) -> dict[str, Any]:
    """Return a job that waits for these too; what is wrong in it already, the scheduler names."""
    extras = config.get("extras", {})
    known = extras.get("after", []) if isinstance(extras, dict) else None
    if not after or not isinstance(known, list):
        return config
    return {**config, "extras": {**extras, "after": [*known, *after]}}


async def _follow(session: CliSession, name: str, user: str | None, *, watch_it: bool) -> int:
    owner = await session.owner(user)
    if session.as_json and not watch_it:
        session.print_json({"name": name, "username": owner})
    elif not session.as_json:
        session.say("Job {name} is submitted.", name=name)
        if not watch_it:
            # what would be waited for in vain is best known now
            detail = await session.client.job(owner, name)
            if page := detail.get("consoleUrl"):
                print(printable_lines(page))
            status = detail["jobStatus"]
            if status["subState"] in ("DEPENDENCY_WAIT", "QUEUED"):
                print(printable_lines(status["waitingReason"]))
    if not watch_it:
        return OK
    return await watch(session.client, owner, name, session.locale, as_json=session.as_json)


def _settings(folder: Path, *, reads: bool, no_code: bool) -> CodeSettings:
    """Read the settings of a folder; wrong ones are no obstacle to a job without code."""
    if not reads:
        return CodeSettings()
    try:
        return read_settings(folder)
    except CodeError:
        if no_code:
            return CodeSettings()
        raise
