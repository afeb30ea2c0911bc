"""A task's log on disk, for every engine: written within a limit, read by offset, removed at last."""
