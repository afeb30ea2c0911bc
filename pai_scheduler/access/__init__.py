"""The way in: keys, login names, what a task needs so that one can log into it, who came and when."""
