"""The scheduler's data folder: who owns it, which files in it must stay, how one is written durably."""
