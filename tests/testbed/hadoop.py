"""Hadoop's programs for the tests: jars from PyPI and Debian, kept in the cache, and the Java to run them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.testbed.machine import CACHE, CannotError, apt_install, locked, say

#: The source distribution of this package carries the jars of Hadoop 2.7.3.
_PYSPARK = "2.4.8"
_JARS = (  # what the names begin with
    "activation-", "commons-", "curator-", "guava-14", "hadoop-annotations-", "hadoop-auth-",
    "hadoop-common-",
    "hadoop-hdfs-", "htrace-core-", "httpclient-", "httpcore-", "jackson-core-asl-", "jackson-mapper-asl-",
    "javax.servlet-api-", "jetty-6", "jetty-util-6", "leveldbjni-", "log4j-1", "netty-", "protobuf-java-",
    "slf4j-", "xercesImpl-", "xmlenc-", "zookeeper-",
)  # fmt: skip
_DEBIAN_FOLDER = Path("/usr/share/java")
#: A jar in Debian's folder, and the package that brings it.
_DEBIAN_JARS = {
    "jersey1-core.jar": "libjersey1-core-java",
    "jersey1-server.jar": "libjersey1-server-java",
    "jersey1-servlet.jar": "libjersey1-servlet-java",
    "jsr311-api.jar": "libjsr311-api-java",
    "commons-daemon.jar": "libcommons-daemon-java",
    "jaxb-api.jar": "libjaxb-api-java",
    "jaxb-runtime.jar": "libjaxb-java",
    "jaxb-core.jar": "libjaxb-java",
    "istack-commons-runtime.jar": "libistack-commons-java",
    "txw2.jar": "libtxw2-java",
}
#: What of Java's inner parts this Hadoop, which is older than modules, reaches into.
_OPENED = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)
_SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
_LOG4J = """\
log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""


def packages() -> dict[str, str]:
    """List what has to be installed from Debian: a program or file, and its package."""
    missing = {
        str(_DEBIAN_FOLDER / jar): name for jar, name in _DEBIAN_JARS.items() if not _debian(jar).exists()
    }
    return {"java": "default-jre-headless", **missing}


def provide_hadoop() -> Path:
    """Return the folder with Hadoop's jars; what lacks is fetched. CannotError where that is impossible."""
    apt_install(packages())
    folder = CACHE / f"hadoop-of-pyspark-{_PYSPARK}"
    with locked("hadoop"):
        if not folder.exists():
            _fetch(folder)
    return folder


def java(hadoop: Path, settings: Path, *arguments: str) -> list[str]:
    """Return the command that runs a class of Hadoop with the settings in a folder."""
    class_path = [str(settings), f"{hadoop}/*", *(str(_debian(jar)) for jar in _DEBIAN_JARS)]
    return ["java", *_SMALL, *_OPENED, "-cp", ":".join(class_path), *arguments]


def write_settings(folder: Path, files: dict[str, dict[str, str]]) -> None:
    """Write what Hadoop reads at its start: `core-site.xml` and others, each with its properties."""
    for web in ("hdfs", "datanode"):
        (folder / "webapps" / web / "WEB-INF").mkdir(parents=True, exist_ok=True)
        (folder / "webapps" / web / "WEB-INF" / "web.xml").write_text("<web-app/>")
    (folder / "log4j.properties").write_text(_LOG4J)
    for name, properties in files.items():
        lines = (
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in properties.items()
        )
        (folder / name).write_text("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n")


def _debian(jar: str) -> Path:
    return _DEBIAN_FOLDER / jar


def _fetch(folder: Path) -> None:
    say(f"fetching Hadoop's jars, in the source distribution of pyspark {_PYSPARK} on PyPI (220 MB)")
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="hadoop-") as name:
        temporary = Path(name)
        # a source distribution is only had by building its description, with what it takes for given
        _run(sys.executable, "-m", "venv", str(temporary / "venv"))
        pip = str(temporary / "venv" / "bin" / "pip")
        _run(pip, "install", "--quiet", "setuptools<81", "wheel")
        _run(
            pip, "download", "--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:",
            "--dest", name, f"pyspark=={_PYSPARK}",
        )  # fmt: skip
        jars = temporary / "jars"
        jars.mkdir()
        with tarfile.open(temporary / f"pyspark-{_PYSPARK}.tar.gz") as archive:
            for member in archive:
                jar = Path(member.name).name
                if "/deps/jars/" in member.name and jar.startswith(_JARS):
                    source = archive.extractfile(member)
                    if source is not None:
                        with open(jars / jar, "wb") as target:
                            shutil.copyfileobj(source, target)
        jars.rename(folder)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise CannotError(f"Hadoop cannot be fetched: {' '.join(last)}")
