"""The Hub alone: proxy and scheduler are programs of their own, so that each is restarted without the others.

The units of hub_config/systemd start the three; docs/administrators/hub.md says how to install them.
"""

import os
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# the scheduler's token for the Hub: nothing that the Hub starts is to inherit it
scheduler_token = os.environ.pop("JUPYTERHUB_API_TOKEN")

# everything that is not said here
load_subconfig(str(Path(__file__).resolve().parent.parent / "jupyterhub_config.py"))  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# The proxy runs already. Its routes outlive the Hub: who uses a server notices no restart.
c.ConfigurableHTTPProxy.should_start = False

# The scheduler runs already: the Hub only knows its token and where it is.
for service in c.JupyterHub.services:
    if service["name"] == "pai":
        del service["command"], service["environment"]
        service["api_token"] = scheduler_token
