"""Login with the accounts of an LDAP directory, and the groups that people have there.

Needs `pip install 'jupyterhub-ldapauthenticator>=2,<3'`. The variables below say where the directory is, and
how the names of people and groups are made there (their DNs).
"""

import os
import ssl
from pathlib import Path
from typing import Any

from ldap3.utils.dn import escape_rdn

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# everything that is not said here
load_subconfig(str(Path(__file__).resolve().parent.parent / "jupyterhub_config.py"))  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

#: DN of a group: `{group}` stands for its name.
group_dn = os.environ.get("PAI_LDAP_GROUP_DN", "cn={group},ou=groups,dc=example,dc=org")
#: Groups that the Hub is to know, with spaces between: who is in none of them may not log in. Empty:
#: everybody in the directory may, and nobody has a group.
names = os.environ.get("PAI_LDAP_GROUPS", "").split()
groups = {group_dn.format(group=escape_rdn(name)): name for name in names}

c.JupyterHub.authenticator_class = "ldap"
# The name must be that of the server's certificate.
c.LDAPAuthenticator.server_address = os.environ["PAI_LDAP_SERVER"]
c.LDAPAuthenticator.server_port = int(os.environ.get("PAI_LDAP_PORT", "389"))
# StartTLS before any password is sent, and only to the server whose certificate is right: without `validate`
# no certificate is looked at.
c.LDAPAuthenticator.tls_kwargs = {
    "validate": ssl.CERT_REQUIRED,
    "ca_certs_file": os.environ.get("PAI_LDAP_CA_FILE", "/etc/ssl/certs/ca-certificates.crt"),
}
# DN of a person: `{username}` is what was typed. Where a person's DN has no such name in it, see `lookup_dn`
# of the authenticator.
c.LDAPAuthenticator.bind_dn_template = os.environ.get(
    "PAI_LDAP_USER_DN", "uid={username},ou=people,dc=example,dc=org"
)
c.LDAPAuthenticator.allowed_groups = list(groups)
# How groups name their members (groupOfNames, Active Directory). In a posixGroup it is memberUid={uid}.
c.LDAPAuthenticator.group_search_filter = "(member={userdn})"
c.LDAPAuthenticator.group_attributes = ["member"]
c.Authenticator.allow_all = not groups


def add_groups(_authenticator: object, _handler: object, login: dict[str, Any]) -> dict[str, Any]:
    """Name the groups of somebody who has just logged in: those of the directory that are named above."""
    return {**login, "groups": [groups[dn] for dn in login["auth_state"]["ldap_groups"]]}


# They become the Hub's groups, by which virtual clusters (`groups` in the cluster file) and profiles are open
# to people. They are read anew at each login.
c.Authenticator.manage_groups = True
c.Authenticator.post_auth_hook = add_groups
# Nobody has a shared password here, of which the login page would tell.
del c.JupyterHub.template_vars["announcement_login"]
