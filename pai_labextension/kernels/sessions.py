"""Which notebook has which kernel, also after the notebook server was started anew."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir
from jupyter_server.services.sessions.sessionmanager import SessionManager

from .manager import JobKernelsManager, job_of

_COLUMNS = ("session_id", "path", "name", "type", "kernel_id")


class JobSessionManager(SessionManager):
    """Keeps the sessions of kernels that are jobs in a small file: those kernels outlive the server."""

    async def list_sessions(self) -> Any:
        """List the sessions, those that were there before this server among them."""
        await self._settled()
        return await super().list_sessions()

    async def session_exists(self, path: str) -> bool:
        """Return whether a notebook has a kernel."""
        await self._settled()
        return bool(await super().session_exists(path))

    async def restore(self) -> None:
        """Give notebooks the kernels that they had when the server before this one ended."""
        for kept in self._read():
            if kept["kernel_id"] not in self.kernel_manager:
                continue
            rows = self.cursor.execute(
                "SELECT 1 FROM session WHERE kernel_id=? OR path=?", (kept["kernel_id"], kept["path"])
            )
            if rows.fetchone() is None:
                self.cursor.execute(
                    "INSERT INTO session VALUES (?,?,?,?,?)", tuple(kept[name] for name in _COLUMNS)
                )

    async def save_session(self, session_id: Any, *values: Any, **named: Any) -> Any:
        """Note a session."""
        model = await super().save_session(session_id, *values, **named)
        self._write()
        return model

    async def update_session(self, session_id: Any, **values: Any) -> None:
        """Note what is new of a session."""
        await super().update_session(session_id, **values)
        self._write()

    async def delete_session(self, session_id: Any) -> None:
        """Note that a session is over."""
        await super().delete_session(session_id)
        self._write()

    async def _settled(self) -> None:
        if isinstance(self.kernel_manager, JobKernelsManager):
            await self.kernel_manager.settled()

    @property
    def _file(self) -> Path:
        settings = getattr(self.kernel_manager, "pai_settings", None)
        server = settings.server if settings is not None else ""
        name = hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Path(jupyter_data_dir()) / "pai-kernels" / f"{name}.json"

    def _read(self) -> list[dict[str, Any]]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [
            each
            for each in (found if isinstance(found, list) else [])
            if isinstance(each, dict) and all(isinstance(each.get(name), str) for name in _COLUMNS)
        ]

    def _write(self) -> None:
        rows = [dict(row) for row in self.cursor.execute("SELECT * FROM session").fetchall()]
        kept = [row for row in rows if self._is_job(row["kernel_id"]) and None not in row.values()]
        file = self._file
        if not kept and not file.exists():
            return
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_text(json.dumps(kept), encoding="utf-8")
            part.replace(file)
        except OSError as error:
            self.log.warning("Which notebook has which kernel cannot be kept in %s: %s", file, error)

    def _is_job(self, kernel_id: str) -> bool:
        return (
            kernel_id in self.kernel_manager and job_of(self.kernel_manager.get_kernel(kernel_id)) is not None
        )
