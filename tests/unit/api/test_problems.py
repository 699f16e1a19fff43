"""Problems: what the document of RFC 9457 holds, and what the note of the request is told."""

from __future__ import annotations

import orjson

from belfry.api.notes import NOTE, RequestNotes
from belfry.api.problem_answers import problem_response
from belfry.api.problems import MEDIA_TYPE, Problem


def test_a_problem_is_a_document_that_names_what_was_asked_for() -> None:
    problem = Problem(404, "There is no such job.", "no_job", job="nightly")
    assert problem.document("/v1/jobs/nightly") == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no such job.",
        "instance": "/v1/jobs/nightly",
        "code": "no_job",
        "job": "nightly",
    }


def test_the_answer_has_its_status_its_headers_and_its_type() -> None:
    answer = problem_response(Problem(429, "Wait.", "too_quick", {"retry-after": "2"}), "/v1")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert orjson.loads(answer.body)["instance"] == "/v1"


def test_the_note_of_the_request_is_told_of_it() -> None:
    notes = RequestNotes()
    token = NOTE.set(notes)
    try:
        problem_response(Problem(403, "No.", "forbidden"), "/v1")
    finally:
        NOTE.reset(token)
    assert (notes.coded, notes.code) == (403, "forbidden")
