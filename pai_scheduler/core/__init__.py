"""What happens next: a state machine, events in, instructions out; pure."""
