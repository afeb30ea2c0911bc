"""The notebook server's own session: when it ends, its memory, its full disk."""
