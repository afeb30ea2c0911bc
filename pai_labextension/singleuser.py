"""The command `pai-singleuser`: JupyterHub's single-user server, which is ready in less than half the time.

It is `jupyterhub-singleuser`, with its options and settings. But what nobody needs yet is not loaded, and
memory is not searched for garbage while all that is loaded stays.
"""

from __future__ import annotations

import gc
import os
import site
import sys
from pathlib import Path

from pai_scheduler.job.lazy_grammar import put_off_grammar

from .messages import msg

_CANNOT_START = 1


def main() -> int:
    """Run the server until it ends; return the exit code."""
    if site.ENABLE_USER_SITE and Path(site.getusersitepackages()).is_dir():
        # what somebody has installed there (`pip install --user`) is for kernels: it may not break the server
        os.execv(sys.executable, [sys.executable, "-s", *sys.argv])  # noqa: S606
    put_off_grammar()
    gc.disable()
    try:
        from jupyterhub.singleuser import main as serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "jupyterhub":
            raise
        missing = msg(
            "It needs JupyterHub, which is not installed where it runs. Install it in the image: "
            "pip install jupyterhub jupyterlab"
        )
        print(f"pai-singleuser: {missing}", file=sys.stderr)
        return _CANNOT_START
    # what is loaded now will be there to the end: it need not be looked at again
    gc.freeze()
    gc.enable()
    return int(serve() or 0)
