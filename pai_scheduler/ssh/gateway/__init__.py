"""The SSH gateway: processes of their own, which let people into tasks and ask the service whom and where."""
