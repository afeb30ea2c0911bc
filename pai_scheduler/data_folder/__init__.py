"""The scheduler's data folder: how a file in it is written durably, how a start is refused."""
