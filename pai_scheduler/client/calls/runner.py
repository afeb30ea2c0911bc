"""Program of a task made of Python code: calls the function, or runs the cell, and sends the outcome.

The job brings this file along, as the main program of a zip file with cloudpickle and what was sent, so the
image needs Python 3.8 and nothing else.
The outcome goes to the user's storage: a line of JSON, which can be read whatever the rest is, and behind it
the value or the exception as cloudpickle writes it.
"""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import os
import pickle
import sys
import time
import traceback
import types
import urllib.error
import urllib.request
import zipimport
from pathlib import Path
from typing import Any

#: The zip file that this is in.
OWN = Path(__file__).resolve().parent
#: What the file of a cell is called in tracebacks.
CELL = "<cell>"
#: How often, a second apart, the storage is tried again; and with which answers it is not ready only.
TRIES, PASSING = 120, (429, 502, 503, 504)


def main() -> int:
    """Do what the job is for; return the task's exit code."""
    about = json.loads(read("call.json"))
    role, index = os.environ["PAI_CURRENT_TASK_ROLE_NAME"], os.environ["PAI_TASK_INDEX"]
    # the code that went along is found by `import` and `open`; it comes before what is only ours
    os.chdir(OWN.parent)
    sys.path[0:1] = [str(OWN.parent), str(OWN)]
    head, body = attempt(about, index)
    text = head.get("traceback", "")
    limit = about["most"]
    if len(body) > limit:
        head, body = {"problem": "size", "length": len(body), "most": limit}, b""
    try:
        send(f"{role}-{index}", json.dumps(head).encode() + b"\n" + body)
    finally:
        # it is sent first: who follows the log then knows that it will be raised there, and shows it once
        print(text, end="", file=sys.stderr, flush=True)
    return 0 if head.get("ok") else 1


def attempt(about: dict[str, Any], index: str) -> tuple[dict[str, Any], bytes]:
    """Run it; return what is to be said of it, and the pickled value or exception."""
    for name, lines in about["sources"].items():
        # a traceback shows the lines of what was written elsewhere
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    here = list(sys.version_info[:2])
    other = {"problem": "python", "here": here, "there": about["python"]}
    if about["kind"] == "function" and here != about["python"]:
        return other, b""
    import cloudpickle

    try:
        if about["kind"] == "function":
            function, values = load("function.pkl"), load(f"arguments-{index}.pkl")
        else:
            function, values = None, load("values.pkl")
    except ImportError as error:
        print_error(error)
        return {"problem": "import", "module": error.name or str(error), "reason": str(error)}, b""
    except Exception as error:
        print_error(error)
        return other if here != about["python"] else {"problem": "load", "reason": repr(error)}, b""
    try:
        if function is None:
            value = run_cell(read("cell.py").decode(), values, about["returns"])
        else:
            args, kwargs = values
            value = function(*args, **kwargs)
            if inspect.iscoroutine(value):
                value = run(value)
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if isinstance(error, SystemExit) and not error.code:
            return {"problem": "exit"}, b""
        return {"error": repr(error), "traceback": own_traceback(error)}, pickled(cloudpickle, error)
    try:
        return {"ok": True}, cloudpickle.dumps(value)
    except Exception as error:
        print_error(error)
        return {"problem": "value", "reason": repr(error)}, b""


def run_cell(source: str, values: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Run a cell in a namespace of its own; return the variables with these names (NameError)."""
    module = types.ModuleType("__main__")
    module.__dict__.update(values)
    # what the cell defines can be pickled, for example for its own worker processes
    sys.modules["__main__"] = module
    code = compile(source, CELL, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, module.__dict__)  # noqa: S307 - the user's own cell: that is what the job is for
    if inspect.iscoroutine(result):
        run(result)
    for name in names:
        if name not in module.__dict__:
            raise NameError(f"name {name!r} is not defined when the cell has ended")
    return {name: module.__dict__[name] for name in names}


def run(work: Any) -> Any:
    """Run a coroutine to its end."""
    import asyncio  # most have none, and it takes a while to load

    return asyncio.run(work)


def read(name: str) -> bytes:
    """Read what was sent along."""
    return zipimport.zipimporter(str(OWN)).get_data(str(OWN / name))


def load(name: str) -> Any:
    """Read what the user sent."""
    return pickle.loads(read(name))  # noqa: S301 - the user's own


def pickled(cloudpickle: Any, error: BaseException) -> bytes:
    """Pickle an exception, without its traceback; empty where that cannot be."""
    try:
        body: bytes = cloudpickle.dumps(error.with_traceback(None))
        # some are written and cannot be read: their constructor wants more than their arguments
        pickle.loads(body)  # noqa: S301 - written a line above
    except Exception:
        return b""
    return body


def own_traceback(error: BaseException) -> str:
    """Return the traceback without our own frames."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def print_error(error: BaseException) -> None:
    """Write the traceback to the task's log."""
    print(own_traceback(error), end="", file=sys.stderr, flush=True)


def send(name: str, data: bytes) -> None:
    """Put what came of it beside the code in the storage; a scheduler that restarts is waited for."""
    root = os.environ["PAI_DEFAULT_FS_URI"].rstrip("/")
    folder = os.environ["PAI_CODE_DIR"][len(root) :].rpartition("/")[0]
    request = urllib.request.Request(  # noqa: S310 - the scheduler's own address
        f"{root}/webhdfs/v1{folder}/results/{name}?op=CREATE&overwrite=true&data=true",
        data=data,
        method="PUT",
        headers={
            "Authorization": f"Bearer {os.environ['PAI_STORAGE_TOKEN']}",
            "Content-Type": "application/octet-stream",
        },
    )
    # a proxy of the image's environment is not meant for it
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for tries_left in range(TRIES, -1, -1):
        try:
            opener.open(request, timeout=900).close()
        except urllib.error.HTTPError as error:
            if error.code not in PASSING or not tries_left:
                raise
        except OSError:
            if not tries_left:
                raise
        else:
            return
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
