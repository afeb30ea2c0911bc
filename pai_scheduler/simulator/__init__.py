"""Replays recorded jobs on the scheduler's own core, with a clock of its own: what would change if …?"""
