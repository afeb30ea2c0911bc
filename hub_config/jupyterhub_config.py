"""JupyterHub's configuration: who may log in, how servers start, and the scheduler as a service of the Hub.

`make run` starts the Hub with this file; what it decides (ports, secrets, the engine) comes in the `PAI_…`
variables below. For a Hub of your own, copy the file, put your authenticator in, and set the variables, or
write the values here. docs/administrators/hub.md explains every setting.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

import yaml

from pai_spawner.handlers import prepare_hub
from pai_spawner.pages import use_pages

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# ── what was decided outside ──────────────────────────────────────────────────────────────────────────

#: Everything that must survive is in this folder.
folder = Path(os.environ["PAI_RUN_FOLDER"])
#: How tasks run: "process" (processes of this machine) or "docker".
engine = os.environ.get("PAI_ENGINE", "process")
#: File that declares nodes and virtual clusters; empty: this machine as it is.
cluster_file = os.environ.get("PAI_CLUSTER", "")
#: File with the profiles of the options form (an example: hub_config/examples/profiles.yaml); empty: none.
profiles_file = os.environ.get("PAI_PROFILES", "")
#: Where users' files are: a folder, or an HDFS (docs/users/storage.md); empty: a folder of the scheduler's.
storage = os.environ.get("PAI_STORAGE", "")
#: The scheduler's account on an HDFS; empty: the one that runs it.
storage_user = os.environ.get("PAI_STORAGE_USER", "")
#: File with the token with which Prometheus reads the scheduler's metrics; empty: only administrators do.
metrics_token_file = os.environ.get("PAI_METRICS_TOKEN_FILE", "")
#: File with the rest of the scheduler's settings (docs/administrators/scheduler-settings.md).
scheduler_file = os.environ.get("PAI_SCHEDULER_FILE") or str(
    Path(__file__).resolve().with_name("scheduler.yaml")
)
#: More options for the scheduler, as a shell has them.
scheduler_options = os.environ.get("PAI_SCHEDULER_OPTIONS", "")
#: The Hub's public address.
public_port = int(os.environ.get("PAI_PORT", "8000"))
#: Ports of the inner parts, on the loopback address only.
hub_port = int(os.environ.get("PAI_HUB_PORT", "8081"))
proxy_api_port = int(os.environ.get("PAI_PROXY_API_PORT", "8001"))
scheduler_port = int(os.environ.get("PAI_SCHEDULER_PORT", "9186"))
sessions_port = int(os.environ.get("PAI_SESSIONS_PORT", "9187"))
console_port = int(os.environ.get("PAI_CONSOLE_PORT", "9188"))
#: What holds for running notebook servers: when they end, how many one may have.
sessions_file = os.environ.get("PAI_SESSIONS_FILE") or str(
    Path(__file__).resolve().with_name("sessions.yaml")
)
#: Names of the Hub's administrators, with spaces between.
administrators = set(os.environ.get("PAI_ADMINISTRATORS", "").split())
#: Port of the SSH gateway, on the loopback address unless told otherwise; empty: 2222, or a free one.
ssh_port = os.environ.get("PAI_SSH_PORT", "")
#: The spawner's own token for the scheduler. It must stay the same over restarts.
spawner_token = os.environ["PAI_SPAWNER_TOKEN"]

repository = Path(__file__).resolve().parent.parent
programs = Path(sys.prefix) / "bin"
public_url = f"http://127.0.0.1:{public_port}"
#: Where people open the console; a web server in front has another address (variants/tls.py).
console_url = (os.environ.get("PAI_PUBLIC_URL") or public_url).rstrip("/") + "/services/pai-console/"

# ── addresses and files ───────────────────────────────────────────────────────────────────────────────

# What people open. Only this machine can reach it; put a web server with TLS in front to open it to others.
c.JupyterHub.bind_url = public_url
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy_api_port}"
# Node's proxy, as installed by `make run`. Its token comes in CONFIGPROXY_AUTH_TOKEN.
c.ConfigurableHTTPProxy.command = [
    shutil.which("node") or "node",
    str(repository / "build/proxy/node_modules/configurable-http-proxy/bin/configurable-http-proxy"),
]
c.ConfigurableHTTPProxy.pid_file = str(folder / "hub" / "proxy.pid")
# Users, servers, logins: in a file, or in a PostgreSQL, whose address may have a password in it.
c.JupyterHub.db_url = (
    os.environ.get("PAI_HUB_DATABASE_URL") or f"sqlite:///{folder / 'hub' / 'jupyterhub.sqlite'}"
)
# On one host name, whatever a server shows in a browser can act for the person who looks at it. Where users
# do not trust each other, give each a host name of their own: variants/subdomains.py.
# Logins stay valid over a restart.
c.JupyterHub.cookie_secret_file = str(folder / "hub" / "cookie_secret")

# ── who may log in ────────────────────────────────────────────────────────────────────────────────────

# One password for everybody, made anew at every start: right for one person or a class on one machine.
# Everywhere else, use your own authenticator: https://jupyterhub.readthedocs.io/en/stable/reference/authenticators.html
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ.get("PAI_PASSWORD") or None
# Administrators have one of their own: everybody else's would make anybody one of them.
c.SharedPasswordAuthenticator.admin_password = os.environ.get("PAI_ADMIN_PASSWORD") or None
c.Authenticator.allow_all = True
# They see everybody's sessions and jobs, stop them, and change shares: at /services/pai-console/admin.
c.Authenticator.admin_users = administrators
# The login page says what that means. Remove this with the shared password.
c.JupyterHub.template_vars = {
    "announcement_login": "Everybody logs in with one shared password here, under any name: everybody who "
    "has the password can be anybody, and sees and changes what is theirs. Keep nothing secret here."
}

# ── the scheduler, a service of the Hub at /services/pai ──────────────────────────────────────────────

scheduler_command = [
    str(programs / "pai-scheduler"),
    # what is said in words below wins over this file
    *("--config", scheduler_file),
    *("--engine", engine),
    *("--data-dir", str(folder / "scheduler")),
    # whose tokens may submit and stop jobs for others: the spawner's, and that of the service below
    *("--admin-service", "pai-spawner"),
    *("--admin-service", "pai-sessions"),
    # notifications and the command line link to the pages of jobs there
    *("--console-url", console_url),
]
if ssh_port:
    # To let users of other machines log into their tasks, add --ssh-host 0.0.0.0 and --ssh-public-host NAME;
    # tasks must be containers for that.
    scheduler_command += ["--ssh-port", ssh_port]
if cluster_file:
    scheduler_command += ["--cluster", cluster_file]
if storage:
    scheduler_command += ["--storage", storage]
if storage_user:
    scheduler_command += ["--storage-user", storage_user]
if metrics_token_file:
    scheduler_command += ["--metrics-token-file", metrics_token_file]
if engine != "process":
    # Containers cannot reach this machine's loopback address. The scheduler forwards for them from Docker's
    # bridge address to the Hub's public port; on other nodes of a Swarm their agents do so through it.
    scheduler_command += ["--front-door-port", str(public_port)]
scheduler_command += shlex.split(scheduler_options)

c.JupyterHub.services = [
    {
        "name": "pai",
        "url": f"http://127.0.0.1:{scheduler_port}",
        "command": scheduler_command,
        # where the Docker Engine is, when it is not in the usual place; and the PostgreSQL to use instead of
        # a file in the scheduler's folder (docs/administrators/scheduler.md), whose address may have
        # a password in it
        "environment": {
            name: os.environ[name]
            for name in ("DOCKER_HOST", "PAI_DATABASE_URL", "PGPASSFILE")
            if name in os.environ
        },
        "display": False,
    },
    {
        "name": "pai-sessions",
        "url": f"http://127.0.0.1:{sessions_port}",
        "command": [
            *(sys.executable, "-m", "pai_spawner.sessions"),
            *("--policy", sessions_file),
            *("--data-dir", str(folder / "sessions")),
            *("--scheduler-url", f"http://127.0.0.1:{scheduler_port}/services/pai"),
        ],
        "display": False,
    },
    # jobs, queue and cluster on the web, without a notebook server: at /services/pai-console/
    {
        "name": "pai-console",
        "url": f"http://127.0.0.1:{console_port}",
        "command": [
            *(sys.executable, "-m", "pai_labextension.console"),
            *("--scheduler-url", f"http://127.0.0.1:{scheduler_port}/services/pai"),
            *("--sessions-url", f"http://127.0.0.1:{sessions_port}/services/pai-sessions"),
        ],
        "display": False,
        "oauth_no_confirm": True,
        # what a login to it may do: it asks these two in the name of the person, and nothing else
        "oauth_client_allowed_scopes": [
            "access:services!service=pai",
            "access:services!service=pai-sessions",
        ],
    },
    # not a program: the identity with which the spawner, inside the Hub, talks to the scheduler
    {"name": "pai-spawner", "api_token": spawner_token, "display": False},
]

# everybody has a link to the console in the bar of the Hub's pages, administrators one to their part of it
c.JupyterHub.template_vars["console_page"] = "services/pai-console/"

# Who may talk to the scheduler, with tokens of their own, in the notebook or outside: every user. The
# scheduler shows a user their own jobs only.
c.JupyterHub.load_roles = [
    {
        "name": "user",
        "description": "Standard user privileges, and the scheduler",
        "scopes": [
            "self",
            *(f"access:services!service={name}" for name in ("pai", "pai-sessions", "pai-console")),
        ],
    },
    # it reads what servers do, and ends them
    {
        "name": "pai-sessions",
        "scopes": [
            *("list:users", "read:servers", "admin:server_state", "delete:servers"),
            "access:services!service=pai",
        ],
        "services": ["pai-sessions"],
    },
    {"name": "pai-spawner", "scopes": ["access:services!service=pai"], "services": ["pai-spawner"]},
    # the scheduler asks the Hub who its users are, and to which groups they belong
    {"name": "pai-scheduler", "scopes": ["read:users"], "services": ["pai"]},
]

# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────

# The Hub's pages as people read them: what each server does, why it has ended, in English or Chinese.
use_pages(c)

# ── servers ───────────────────────────────────────────────────────────────────────────────────────────

c.JupyterHub.spawner_class = "pai_spawner.PAISpawner"
c.PAISpawner.scheduler_url = f"http://127.0.0.1:{scheduler_port}/services/pai"
c.PAISpawner.scheduler_token = spawner_token
# Servers reach the Hub and the scheduler through the public address: the inner ports may change at a restart.
c.PAISpawner.hub_connect_url = public_url
c.PAISpawner.api_url = f"{public_url}/services/pai"
# A server's own token may do what JupyterHub's servers need, and use the scheduler.
c.Spawner.server_token_scopes = [
    "users:activity!user",
    "access:servers!server",
    "access:services!service=pai",
    "access:services!service=pai-sessions",
]
c.PAISpawner.sessions_file = sessions_file
c.PAISpawner.sessions_url = f"{public_url}/services/pai-sessions"
c.PAISpawner.default_url = "/lab"
# A person may run several servers side by side, with names of their choice.
c.JupyterHub.allow_named_servers = True
# After this many seconds a start goes on in the background, with a page that shows its progress. Long enough
# for a refusal to come back as such; short, as a server may wait long in the queue.
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 2}
# Servers outlive the Hub.
c.JupyterHub.cleanup_servers = False
# A server that started while the Hub was away is found without delaying the Hub's own start.
c.JupyterHub.init_spawners_timeout = 5

# JupyterLab's own manager of extensions would install into the environment that JupyterLab runs from. What
# people install with pip goes to their homes: docs/users/packages.md.
c.PAISpawner.args = ["--LabApp.extension_manager=readonly"]
if engine != "process" or os.geteuid() == 0:
    # Jupyter refuses to run as root unless told to: in a container, or when the Hub itself runs as root.
    c.PAISpawner.args += ["--allow-root"]
# Widgets in notebooks lead there with what only the console has: terminals, Connect.
c.PAISpawner.environment = {"PAI_CONSOLE_URL": console_url}
if engine == "process":
    # The image's name is shown only: every server runs in this Python environment.
    c.PAISpawner.images = {"This machine's Python": "local/python"}
    c.PAISpawner.cmd = [str(programs / "pai-singleuser")]
    c.PAISpawner.environment |= {"PATH": f"{programs}:{os.environ['PATH']}"}
    # Everybody has a folder that stays, with the tutorials in it.
    c.PAISpawner.homes = str(folder / "home")
    c.PAISpawner.tutorials = str(repository / "notebooks")
else:
    # Built by `make run ENGINE=docker`.
    c.PAISpawner.images = {"PAI notebook": os.environ.get("PAI_NOTEBOOK_IMAGE", "pai/notebook:latest")}
    # Any image may be typed; name those of your lab instead: ["registry\\.lab/.*"]
    c.PAISpawner.allowed_images = [".*"]
    # Everybody has a volume that stays, with what it lacks of the image's tutorials.
    c.PAISpawner.home_in_container = "/home/jovyan"
    c.PAISpawner.tutorials = "/opt/jupyter/tutorials"
    c.PAISpawner.ip = "0.0.0.0"  # noqa: S104 - inside the container, on its job's own network

# Choices that are prepared for people, by group. Without any, everything may be chosen. The list may as well
# stand here: c.PAISpawner.profiles = [{"display_name": "Small", "defaults": {"cpus": 2, "memory_mb": 4096}}]
if profiles_file:
    c.PAISpawner.profiles = yaml.safe_load(Path(profiles_file).read_text())

# At the end: the address that the form asks what a start would do, and a check of the profiles.
prepare_hub(c)
