"""`make dist`: what a release publishes, built from the commit and from nothing else.

    git archive HEAD ─► README with absolute links, addresses in pyproject.toml
                     ─► belfry-scheduler (sdist, wheel), belfry-client (wheel)
                     ─► the clients for Java and TypeScript (`clients.py`)
                     ─► SHA256SUMS, provenance.json

The address of the repository is given (URL), for the repository does not hold it; without one,
links stay as they are.  The same commit gives the same bytes: instants are that of the commit.
`provenance.json` says of what commit and locks the files are (in-toto, with the predicate of SLSA).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from belfry import __version__
from deploy.release import clients

ROOT: Final = Path(__file__).parents[2]
DIST: Final = ROOT / "dist"
# The target of a link or picture in Markdown that is neither an address nor a place on the page.
RELATIVE: Final = re.compile(r"(\]\()(?!https?://|#|mailto:)([^)\s]+)")
PROJECTS: Final = {".": (), "clients/python": ("--wheel",)}


def absolute(markdown: str, url: str, version: str) -> str:
    """The page with links into the repository, as they were at this version."""
    return RELATIVE.sub(rf"\g<1>{url}/blob/v{version}/\g<2>", markdown)


def addressed(pyproject: str, url: str, version: str) -> str:
    """The project with addresses for an index."""
    urls = {
        "Source": url,
        "Documentation": f"{url}/blob/v{version}/docs/README.md",
        "Changelog": f"{url}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{url}/issues",
    }
    lines = "".join(f'{name} = "{address}"\n' for name, address in urls.items())
    return f"{pyproject}\n[project.urls]\n{lines}"


def provenance(files: list[Path], commit: str, url: str) -> dict[str, Any]:
    """Of what the files were made, as a statement of in-toto."""
    locks = [*sorted((ROOT / "locks").glob("*.lock")), ROOT / "requirements.lock"]
    of_locks = [
        {"name": path.relative_to(ROOT).as_posix(), "digest": {"sha256": _sha256(path)}}
        for path in locks
    ]
    source = {"uri": f"git+{url or 'file:belfry'}", "digest": {"gitCommit": commit}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": each.name, "digest": {"sha256": _sha256(each)}} for each in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "make dist",
                "externalParameters": {"version": __version__, "url": url},
                "resolvedDependencies": [source, *of_locks],
            },
            "runDetails": {"builder": {"id": f"python {sys.version.split()[0]}"}},
        },
    }


def main(url: str) -> None:
    """Build all into dist/, and say what came out."""
    if url and not re.fullmatch(r"https://[^\s/]+(/[^\s/]+)+", url):
        sys.exit(f"URL={url} is no address of a repository: give https://host/owner/name")
    commit, epoch = _git("rev-parse", "HEAD"), _git("log", "-1", "--format=%ct")
    DIST.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="belfry-dist-") as folder:
        archive = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        for project, kinds in PROJECTS.items():
            _build(Path(folder, project), url, epoch, kinds)
        if lacking := clients.missing():
            print(f"The clients for Java and TypeScript are left out: {lacking} is not here.")
        else:
            clients.build(Path(folder, "clients"), DIST, url, epoch)
    files = sorted(DIST.glob(f"belfry[_-]*-{__version__}*"))
    made = json.dumps(provenance(files, commit, url), indent=2) + "\n"
    DIST.joinpath("provenance.json").write_text(made, "utf-8")
    told = "".join(f"{_sha256(each)}  {each.name}\n" for each in files)
    DIST.joinpath("SHA256SUMS").write_text(told, "utf-8")
    print(told, end="")


def _build(project: Path, url: str, epoch: str, kinds: tuple[str, ...]) -> None:
    if url:
        for name, change in (("README.md", absolute), ("pyproject.toml", addressed)):
            path = project / name
            path.write_text(change(path.read_text("utf-8"), url, __version__), "utf-8")
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(DIST)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run([*command, str(project)], env=environment, check=True, stdout=subprocess.DEVNULL)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*words: str) -> str:
    command = ["git", *words]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return told.stdout.strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
