"""Each user's servers on a host name of their own, as alice.hub.example.org: for users who trust nobody.

On one host name, whatever a server shows in a browser can act for the person who looks at it. This needs DNS
and a certificate for hub.example.org and *.hub.example.org: hub_config/examples/nginx.conf serves both.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# everything that is not said here; it reads PAI_PUBLIC_URL
load_subconfig(str(Path(__file__).resolve().with_name("tls.py")))  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

hub = urlsplit(c.JupyterHub.public_url)
c.JupyterHub.subdomain_host = f"{hub.scheme}://{hub.netloc}"

# Services have host names of their own as well.
console = f"{hub.scheme}://pai-console--service.{hub.netloc}/services/pai-console/"
c.JupyterHub.template_vars["console_page"] = console
c.PAISpawner.environment["PAI_CONSOLE_URL"] = console
for service in c.JupyterHub.services:
    if service["name"] in ("pai", "pai-sessions"):
        service["command"] += ["--console-url", console]

# Programs go on using the usual addresses, by which the proxy then has to find the services too: clients that
# of the Hub, servers and tasks 127.0.0.1, that of Docker's bridge, or the name that jobs know the storage by.
inner_hosts = os.environ.get("PAI_INNER_HOSTS", "127.0.0.1 172.17.0.1 pai-storage").split()
urls = {service["name"]: service["url"] for service in c.JupyterHub.services if "url" in service}
c.Proxy.extra_routes = {
    f"{hub.hostname}/services/pai/": urls["pai"],
    **{f"{host}/services/{name}/": url for host in inner_hosts for name, url in urls.items()},
}
