"""Turns decisions into deeds: the one writer commits them, the launcher carries them out with an engine."""
