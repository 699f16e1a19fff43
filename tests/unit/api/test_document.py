"""The committed OpenAPI document is the one that the application answers with."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from belfry.api.routes.openapi import document
from tests.architecture.tree import ROOT


def test_the_committed_document_is_fresh() -> None:
    written = (ROOT / "docs" / "openapi.json").read_bytes()
    assert written == document(), "Run `make docs`."


def test_every_reference_resolves() -> None:
    found = json.loads(document())
    named = set(found["components"]["schemas"])
    used = {ref.rpartition("/")[2] for ref in _references(found)}
    assert used <= named
    assert found["openapi"].startswith("3.1")


def test_the_page_has_a_curl_line_for_each_call() -> None:
    """Another test runs them all."""
    page = (ROOT / "docs" / "http.md").read_text("utf-8").replace("\\\n", " ")
    shown = {_call(line) for line in re.findall(r"^\$ (curl .*)$", page, re.MULTILINE)}
    for path, methods in json.loads(document())["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for method in methods:
            calls = [call for call in shown if call[0] == method and pattern.fullmatch(call[1])]
            assert calls, f"docs/http.md has no curl line for {method.upper()} {path}"


def _call(line: str) -> tuple[str, str]:
    """Method and path of a curl line."""
    words = shlex.split(line)
    method = words[words.index("-X") + 1] if "-X" in words else "POST" if "-d" in words else "GET"
    address = next(word for word in words if word.startswith("http://"))
    return method.lower(), address.partition("8700")[2].partition("?")[0]


def test_every_answer_of_the_api_is_described() -> None:
    for path, methods in json.loads(document())["paths"].items():
        for method, operation in methods.items():
            assert operation["description"] or operation["summary"], (method, path)
            for status, answer in operation["responses"].items():
                bare = path == "/metrics" or status == "204"
                assert bare or answer.get("content"), (method, path, status)


def test_what_every_route_may_answer_is_said_of_each() -> None:
    for path, methods in json.loads(document())["paths"].items():
        for operation in methods.values():
            answers = operation["responses"]
            for status in ("403", "413", "421", "503"):
                problem = answers[status]["content"]["application/problem+json"]
                assert problem["schema"]["$ref"].endswith("/ProblemAnswer"), (path, status)
            assert ("401" in answers) == path.startswith("/v1/"), path
    paths = json.loads(document())["paths"]
    ill = paths["/healthz/live"]["get"]["responses"]["503"]["content"]
    assert ill["application/json"]["schema"]["$ref"].endswith("/HealthAnswer")
    # A DUPLICATE is answered as the request that it repeats, which may have found nothing.
    assert "404" in paths["/v1/tenants/{tenant}/schedules"]["post"]["responses"]


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        here = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return here + [ref for child in node.values() for ref in _references(child)]
    if isinstance(node, list):
        return [ref for child in node for ref in _references(child)]
    return []
