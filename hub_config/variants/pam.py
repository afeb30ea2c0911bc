"""Login with the accounts of this machine, by PAM, with their groups: for one machine, or accounts by SSSD.

PAM checks passwords with /etc/shadow, so the Hub must run as root, or as a member of the group `shadow`.
"""

import grp
import os
import pwd
from contextlib import suppress
from pathlib import Path
from typing import Any

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# everything that is not said here
load_subconfig(str(Path(__file__).resolve().parent.parent / "jupyterhub_config.py"))  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

#: Groups of the machine whose members may log in, with spaces between; empty: everybody with an account.
groups = set(os.environ.get("PAI_PAM_GROUPS", "").split())
#: Groups whose members are administrators of the Hub; who leaves them is none at the next login.
admin_groups = set(os.environ.get("PAI_PAM_ADMIN_GROUPS", "").split())

c.JupyterHub.authenticator_class = "pam"
# Which file of /etc/pam.d says how passwords and accounts are checked.
c.PAMAuthenticator.service = os.environ.get("PAI_PAM_SERVICE", "login")
c.PAMAuthenticator.admin_groups = admin_groups
c.LocalAuthenticator.allowed_groups = groups
c.Authenticator.allow_all = not groups


def add_groups(_authenticator: object, _handler: object, login: dict[str, Any]) -> dict[str, Any]:
    """Name the groups of somebody who has just logged in: those of this machine."""
    account = pwd.getpwnam(login["name"])
    names = []
    for number in os.getgrouplist(account.pw_name, account.pw_gid):
        with suppress(KeyError):  # a number without a name
            names.append(grp.getgrgid(number).gr_name)
    return {**login, "groups": names}


# They become the Hub's groups, by which virtual clusters (`groups` in the cluster file) and profiles are open
# to people. They are read anew at each login.
c.Authenticator.manage_groups = True
c.Authenticator.post_auth_hook = add_groups
# Nobody has a shared password here, of which the login page would tell.
del c.JupyterHub.template_vars["announcement_login"]
