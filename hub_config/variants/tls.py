"""The Hub at https://: behind a web server that has the certificate, as hub_config/examples/nginx.conf is.

The Hub's own port stays on this machine's loopback address, where servers and jobs go on reaching it.
"""

import os
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# everything that is not said here
load_subconfig(str(Path(__file__).resolve().parent.parent / "jupyterhub_config.py"))  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

#: The Hub as browsers reach it, such as https://hub.example.org
public_url = os.environ["PAI_PUBLIC_URL"].rstrip("/") + "/"
if not public_url.startswith("https://"):
    raise ValueError(f"PAI_PUBLIC_URL begins with https://, not as {public_url} does")

# Links and the ways back from a login are made of it. Cookies are for https only because the web server says
# so with each request (X-Forwarded-Proto).
c.JupyterHub.public_url = public_url
