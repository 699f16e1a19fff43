"""What MkDocs does besides, to make a site of docs/ (`mkdocs.yml`).

The pages are read in the repository too, so their links are those of the repository.  Here

    links to pages beside docs/ (ARCHITECTURE.md)    become pages of the site
    links to code                                    become plain text, or lead to `repo_url` if set
    runbooks/*.md in the navigation                  becomes each of them
    openapi.json, asyncapi.json                      become a page each
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
# Pages beside docs/, by their names on the site.
BESIDE: Final = {
    "architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
NAMES: Final = {path: name for name, path in BESIDE.items()}
LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
OPENAPI: Final = """# The HTTP API

Each route, from [openapi.json](openapi.json), which any worker serves at `/openapi.json` as well.
[HTTP](http.md) says how they are meant.

<swagger-ui src="openapi.json"/>
"""
TOPICS: Final = (
    "Each topic that clients write to or read, from [asyncapi.json](asyncapi.json).  The prefix"
    " `belfry.` is a setting.  [Schemas](schemas.md) has the fields of the records."
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Write out the pages that the navigation names by a pattern."""
    config.nav = _written_out(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in docs/."""
    for name, path in BESIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    files.append(File.generated(config, "openapi.md", content=OPENAPI))
    described = json.loads((ROOT / "docs" / "asyncapi.json").read_text("utf-8"))
    files.append(File.generated(config, "topics.md", content=topics_page(described)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Turn the repository's links into those of the site."""
    name = page.file.src_uri
    at = BESIDE.get(name, f"docs/{name}")
    return LINK.sub(lambda link: _link(link, name, dirname(at), config.repo_url or ""), markdown)


def topics_page(described: dict[str, Any]) -> str:
    """A page of the topics that an AsyncAPI document describes."""
    lines = [
        "# Topics",
        "",
        TOPICS,
        "",
        "| topic | who writes | holds | records | keeps |",
        "|---|---|---|---|---|",
    ]
    for name, operation in described["operations"].items():
        channel = described["channels"][operation["channel"]["$ref"].rpartition("/")[2]]
        writer = "clients" if operation["action"] == "receive" else "belfry"
        records = ", ".join(f"`{each}`" for each in channel["messages"])
        title = channel.get("title", name)
        text = f"**{title}.** {channel.get('description', '')}"
        lines.append(
            f"| `{channel['address']}` | {writer} | {text} | {records} | {_kept(channel)} |"
        )
    return "\n".join(lines) + "\n"


def _kept(channel: dict[str, Any]) -> str:
    """How long a topic keeps its records."""
    config = channel.get("bindings", {}).get("kafka", {}).get("topicConfiguration", {})
    if "compact" in config.get("cleanup.policy", ()):
        return "the last of each key"
    kept_ms = config.get("retention.ms")
    return "as the cluster says" if kept_ms is None else f"{kept_ms // 86_400_000} days"


def _link(link: re.Match[str], page: str, folder: str, repo_url: str) -> str:
    """One link of a page; `folder` is that of its file in the repository."""
    text, target = link[1], link[2]
    path, _, anchor = target.partition("#")
    if not path or ":" in path:
        return link[0]
    there = normpath(join(folder, path))
    if there in NAMES or there.startswith("docs/"):
        site = NAMES.get(there, there.removeprefix("docs/"))
        site = join(site, "README.md") if (ROOT / there).is_dir() else site
        way = relpath(site, dirname(page) or ".")
        return f"[{text}]({way}{'#' if anchor else ''}{anchor})"
    if there == "README.md" or not repo_url:
        return text
    return f"[{text}]({repo_url.rstrip('/')}/blob/main/{there})"


def _written_out(nav: Any) -> Any:
    if isinstance(nav, dict):
        return {title: _written_out(below) for title, below in nav.items()}
    if isinstance(nav, list):
        return [one for each in nav for one in _pages(_written_out(each))]
    return nav


def _pages(entry: Any) -> list[Any]:
    """An entry, or the pages that its pattern stands for; a folder's README has its own entry."""
    if not isinstance(entry, str) or "*" not in entry:
        return [entry]
    found = sorted((ROOT / "docs").glob(entry))
    return [str(each.relative_to(ROOT / "docs")) for each in found if each.stem != "README"]
