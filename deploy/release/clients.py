"""The clients of other languages as their registries take them; a part of `make dist`.

    clients/java            ─► belfry-client-….jar, -sources.jar, -javadoc.jar, .pom
    clients/java/starter    ─► belfry-spring-boot-starter-….jar, .pom
    clients/typescript      ─► belfry-client-….tgz

A module of Go is published by a tag (`docs/releasing.md`).  Maven and npm put the commit's instant,
or none, into what they pack, so the same commit gives the same bytes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from posixpath import join, normpath
from typing import Final

from belfry import __version__

# The version of what is checked out, which both of Maven's projects have.
JARS: Final = {"java": "belfry-client", "java/starter": "belfry-spring-boot-starter"}
# Builds both, so that the starter finds the client without an installation.
BOTH: Final = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>io.belfry</groupId>
  <artifactId>both</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <modules><module>java</module><module>java/starter</module></modules>
</project>
"""
PROGRAMS: Final = ("mvn", "npm")
# The package's folder in the repository, from which its page's links start.
PACKAGE: Final = "clients/typescript"
RELATIVE: Final = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


def missing() -> list[str]:
    """Programs that building the clients takes, and that this machine has not."""
    return [each for each in PROGRAMS if shutil.which(each) is None]


def addressed_pom(pom: str, url: str) -> str:
    """The project with the addresses that Maven's registry asks for."""
    git = f"scm:git:{url}.git"
    told = f"  <url>{url}</url>\n  <scm><url>{url}</url><connection>{git}</connection></scm>\n"
    head, end, rest = pom.partition("  </licenses>\n")
    assert end, "the project names no licence"
    return f"{head}{end}{told}{rest}"


def addressed_package(package: str, url: str) -> str:
    """The package with the addresses that npm's registry shows."""
    told = json.loads(package)
    told |= {"repository": {"type": "git", "url": f"git+{url}.git"}, "homepage": url}
    return json.dumps(told, indent=2) + "\n"


def addressed_page(markdown: str, url: str) -> str:
    """The package's page with links that lead somewhere on any page."""
    at = f"{url}/blob/v{__version__}"
    return RELATIVE.sub(lambda link: f"]({at}/{normpath(join(PACKAGE, link[1]))})", markdown)


def build(clients: Path, dist: Path, url: str, epoch: str) -> None:
    """Build all from `clients`, a copy that may be changed, into `dist`."""
    if url:
        for project in JARS:
            pom = clients / project / "pom.xml"
            pom.write_text(addressed_pom(pom.read_text("utf-8"), url), "utf-8")
        for name, change in (("package.json", addressed_package), ("README.md", addressed_page)):
            path = clients / "typescript" / name
            path.write_text(change(path.read_text("utf-8"), url), "utf-8")
    _jars(clients, dist, epoch)
    shutil.copy(clients.parent / "LICENSE", clients / "typescript")
    npm = ("npm", "--prefix", str(clients / "typescript"), "--silent")
    _run(*npm, "ci")
    _run("npm", "--silent", "pack", str(clients / "typescript"), "--pack-destination", str(dist))


def _jars(clients: Path, dist: Path, epoch: str) -> None:
    instant = datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    (clients / "pom.xml").write_text(BOTH, "utf-8")
    at_instant = f"-Dproject.build.outputTimestamp={instant}"
    quiet = ("mvn", "-q", "-B", "-f", str(clients), at_instant)
    _run(*quiet, "-P", "release", "package", "-Dmaven.test.skip")
    for project, name in JARS.items():
        for jar in sorted((clients / project / "target").glob(f"{name}-{__version__}*.jar")):
            shutil.copy(jar, dist)
        shutil.copy(clients / project / "pom.xml", dist / f"{name}-{__version__}.pom")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
