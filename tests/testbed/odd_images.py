"""Images in which a program of another system has a hard time, made of Debian's packages."""

from __future__ import annotations

from collections.abc import Iterable

from tests.testbed.images import DEBIAN, build_image
from tests.testbed.machine import locked

#: A static busybox and nothing else: no /etc/passwd, no /tmp, no library.
BARE = "local/bare"
#: musl instead of glibc, and a shell that was linked to it; root has a password that is locked.
MUSL = "local/musl"
#: Run by a user without a name, with libraries that break who loads them.
NAMELESS = "local/nameless"
#: With an SSH server of its own, and a root whose password is locked, as Fedora's and Alpine's is.
OWN_SERVER = "local/own-sshd"

_BARE = """\
FROM {runtime} AS runtime
FROM scratch
COPY --from=runtime /opt/pai/libexec/busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
"""
_MUSL = """\
FROM {runtime} AS runtime
FROM {debian} AS build
RUN sed 's/^deb /deb-src /' /etc/apt/sources.list > /etc/apt/sources.list.d/sources.list \\
 && apt-get update \\
 && apt-get install -y --no-install-recommends dpkg-dev gcc libc6-dev make musl-tools
# as the authors pack it, with all that a package's own changes would have to be made with
RUN cd /tmp && apt-get source --tar-only dash && tar -xf dash_*.orig.tar.* && mv dash-* dash \\
 && cd dash && ./configure --host="$(uname -m)-linux-musl" CC=musl-gcc CFLAGS='-O1 -fPIE' \\
 && make ACLOCAL=: AUTOCONF=: AUTOHEADER=: AUTOMAKE=:
COPY --from=runtime /opt/pai/libexec/busybox /musl/bin/busybox
RUN cd /musl && mkdir -p etc lib root tmp usr/lib \\
 && for applet in $(bin/busybox --list); do [ -e "bin/$applet" ] || ln -s busybox "bin/$applet"; done \\
 && ln -f /tmp/dash/src/dash bin/dash && ln -sf dash bin/sh \\
 && cp -L /lib/ld-musl-*.so.1 lib && cp -L lib/ld-musl-*.so.1 usr/lib/libc.so \\
 && echo 'root:x:0:0:root:/root:/bin/sh' > etc/passwd && echo 'root:x:0:root' > etc/group \\
 && echo 'root:!::0:::::' > etc/shadow
FROM scratch
COPY --from=build /musl/ /
ENV LD_LIBRARY_PATH=/usr/lib LD_PRELOAD=/usr/lib/libc.so
"""
_NAMELESS = """\
FROM {debian}
RUN mkdir /broken && for name in libcrypto.so.3 libz.so.1; do echo 'no library' > "/broken/$name"; done
ENV LD_LIBRARY_PATH=/broken
USER 1000
"""
_OWN_SERVER = """\
FROM {debian}
RUN apt-get update && apt-get install -y --no-install-recommends openssh-server \\
 && rm -rf /var/lib/apt/lists/* \\
 && mkdir -p /run/sshd && sed -i 's/^root:[^:]*/root:!locked/' /etc/shadow
"""


_LINES = {BARE: _BARE, MUSL: _MUSL, NAMELESS: _NAMELESS, OWN_SERVER: _OWN_SERVER}


def odd_images(host: str, runtime: str, names: Iterable[str]) -> None:
    """Make these of them. `runtime`: the image with the runtime of tasks, which has a static busybox."""
    with locked("odd-images"):
        for name in names:
            lines = _LINES[name].format(runtime=runtime, debian=DEBIAN)
            build_image(host, name, {"Dockerfile": lines.encode()})
