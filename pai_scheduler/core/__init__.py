"""The core: a state machine, events in, instructions out; pure."""
