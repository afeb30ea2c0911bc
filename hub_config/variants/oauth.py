"""Login with an account that people have elsewhere, by OAuth 2.0, with the groups that they have there.

Needs `pip install 'oauthenticator>=17,<18'`. The variables below say where the provider is, and who the Hub
is to it; register the Hub there with the address to come back to: https://hub.example.org/hub/oauth_callback.
"""

import os
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

# everything that is not said here
load_subconfig(str(Path(__file__).resolve().parent.parent / "jupyterhub_config.py"))  # type: ignore[name-defined]  # noqa: F821 - given by JupyterHub

#: The Hub as browsers reach it.
public_url = os.environ.get("PAI_PUBLIC_URL") or c.JupyterHub.bind_url
#: Groups whose members may log in, with spaces between; empty: everybody whom the provider lets in.
groups = set(os.environ.get("PAI_OAUTH_GROUPS", "").split())

c.JupyterHub.authenticator_class = "generic-oauth"
c.GenericOAuthenticator.oauth_callback_url = f"{public_url.rstrip('/')}/hub/oauth_callback"
c.GenericOAuthenticator.client_id = os.environ["PAI_OAUTH_CLIENT_ID"]
c.GenericOAuthenticator.client_secret = os.environ["PAI_OAUTH_CLIENT_SECRET"]
c.GenericOAuthenticator.authorize_url = os.environ["PAI_OAUTH_AUTHORIZE_URL"]
c.GenericOAuthenticator.token_url = os.environ["PAI_OAUTH_TOKEN_URL"]
c.GenericOAuthenticator.userdata_url = os.environ["PAI_OAUTH_USERDATA_URL"]
c.GenericOAuthenticator.scope = os.environ.get("PAI_OAUTH_SCOPES", "openid profile groups").split()
# What the provider calls these. A name must be one that people cannot choose for themselves there.
c.GenericOAuthenticator.username_claim = "preferred_username"
c.GenericOAuthenticator.auth_state_groups_key = "oauth_user.groups"

# The provider's groups become the Hub's, by which virtual clusters (`groups` in the cluster file) and
# profiles are open to people. They are read anew at each login.
c.Authenticator.manage_groups = True
c.Authenticator.allow_all = not groups
c.GenericOAuthenticator.allowed_groups = groups
# Nobody has a shared password here, of which the login page would tell.
del c.JupyterHub.template_vars["announcement_login"]
