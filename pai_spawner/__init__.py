"""JupyterHub spawner: a notebook server is a job with one task that keeps running."""

from .spawner import PAISpawner

__all__ = ["PAISpawner"]
