"""What lets a task's programs into the storage as the job's user, without their knowing of it.

`requests`, and with it the `hdfs` library, reads the netrc file that `NETRC` names; `hdfscli` the
configuration that `HDFSCLI_CONFIG` names.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

#: names of the two files
NETRC, HDFSCLI = "netrc", "hdfscli.cfg"


def access_files(user: str, token: str, default_fs_uri: str) -> dict[str, bytes]:
    """Make the files; none where the storage is not reached over HTTP.

    The user's name is only for who reads it: the storage goes by the token. It is encoded, as a netrc file
    ends a name at a space, and `requests` sends no name beyond Latin-1.
    """
    url = urlsplit(default_fs_uri)
    if url.scheme not in ("http", "https") or not url.hostname:
        return {}
    login = quote(user, safe="")
    config = f"[global]\ndefault.alias = pai\n\n[pai.alias]\nurl = {default_fs_uri}\nuser = {login}\n"
    return {
        NETRC: f"machine {url.hostname} login {login} password {token}\n".encode(),
        HDFSCLI: config.encode(),
    }
