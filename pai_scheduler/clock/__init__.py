"""The scheduler's own time, which goes on evenly when the machine's clock is set."""
