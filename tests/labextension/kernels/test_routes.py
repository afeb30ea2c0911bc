"""Which addresses the kernels that are jobs have on a notebook server."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from pai_labextension.kernels.handlers import KeepKernelHandler, KernelsHandler, make_part
from pai_labextension.lazy_routes import RouteSettings

KERNEL = str(uuid.UUID(int=5))


def handlers(path: str, folder: Path) -> list[type]:
    """List what would answer there."""
    part = make_part(RouteSettings("http://scheduler.example", "token", str(folder), "/"))
    return [handler for pattern, handler, _ in part.routes if re.fullmatch(pattern, path)]


def test_the_list_and_more_time_for_one_kernel_have_an_address_each(tmp_path: Path) -> None:
    assert handlers("/pai/kernels", tmp_path) == [KernelsHandler]
    assert handlers(f"/pai/kernels/{KERNEL}/keep", tmp_path) == [KeepKernelHandler]


def test_what_is_no_kernels_id_has_none(tmp_path: Path) -> None:
    for path in ("/pai/kernels/", f"/pai/kernels/{KERNEL}", "/pai/kernels/../keep", "/pai/kernels/a/b/keep"):
        assert handlers(path, tmp_path) == []


async def test_closing_them_closes_nothing_of_the_servers_kernels(tmp_path: Path) -> None:
    part = make_part(RouteSettings("http://scheduler.example", "token", str(tmp_path), "/"))
    await part.close()
    await part.close()
