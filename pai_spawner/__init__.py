"""JupyterHub spawner: a notebook server is a job with one task that keeps running."""

from .messages import msg

try:
    from .spawner import PAISpawner
except ModuleNotFoundError as error:
    if (error.name or "").startswith("pai_"):
        raise
    raise ImportError(
        str(
            msg(
                "pai_spawner runs in JupyterHub and needs the library {library}: pip install '{package}'",
                library=error.name,
                package="pai-for-jupyter[hub]",
            )
        ),
        name=error.name,
    ) from None

__all__ = ["PAISpawner"]
