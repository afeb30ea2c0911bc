"""WebHDFS in front of the users' files: handlers of its operations, its errors, uploads and downloads."""
