"""The way from the browser to the scheduler's API and storage, with the user's own token."""
