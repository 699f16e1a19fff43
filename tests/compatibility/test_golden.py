"""What any release wrote is readable today, and what is written today any release can read."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from belfry.schedules.outcomes import Outcome
from belfry.wire import catalogue
from belfry.wire.audit import audit_of, encode_audit
from belfry.wire.catalogue import RecordReader
from belfry.wire.fired import FiredEvent, encode_fired
from belfry.wire.lifecycle import LifecycleEvent, encode_lifecycle
from belfry.wire.policies import TenantPolicy, encode_policy, http_target
from belfry.wire.safety import unsafe_reason
from tests.compatibility import golden
from tests.compatibility.golden import CASES, Golden, shown, written

RELEASED = list(golden.released())
EVERY = pytest.mark.parametrize(
    "record", RELEASED, ids=[f"{each.version} {each.name} {each.case}" for each in RELEASED]
)
CASE = pytest.mark.parametrize("case", CASES)


def test_the_first_release_is_complete() -> None:
    first = {(each.name, each.case) for each in RELEASED if each.version == "0.1.0"}
    assert first == {(name, case) for name in catalogue.names() for case in CASES}


@EVERY
def test_released_bytes_say_today_what_they_said(record: Golden) -> None:
    said = shown(RecordReader(record.name, record.schema).read(record.body))
    assert said.items() >= record.expected.items()


@EVERY
def test_todays_bytes_are_readable_with_the_released_schema(record: Golden) -> None:
    body = written(catalogue.schema(record.name), CASES[record.case][record.name])
    reader = parse_schema(catalogue.without_logical_types(record.schema))
    said: Any = schemaless_reader(BytesIO(body), catalogue.plain(record.name), reader)
    for key, value in record.expected.items():
        # A symbol that is newer than the release may stand there as its fallback.
        assert shown(said[key]) in (value, "UNKNOWN")


@EVERY
def test_the_released_schema_still_writes_the_released_bytes(record: Golden) -> None:
    if record.case == "minimal":
        given = CASES["minimal"][record.name]
    else:
        fields = {each["name"] for each in record.schema["fields"]}
        given = {key: each for key, each in CASES["rich"][record.name].items() if key in fields}
    assert written(record.schema, given) == record.body


@EVERY
def test_released_single_objects_are_known(record: Golden) -> None:
    fingerprint = catalogue.fingerprint_of(record.schema)
    known = catalogue.by_fingerprint(fingerprint)
    assert known is not None, "put the released schema into schemas/earlier/"
    assert catalogue.fingerprint_of(known) == fingerprint
    assert unsafe_reason(record.schema) is None


@CASE
def test_the_encoders_of_the_wire_write_what_the_schema_writes(case: str) -> None:
    records = CASES[case]
    fired = {"version": 1, "occurrence": 0, **records["FiredEvent"]}
    assert encode_fired(FiredEvent(**fired)) == written(catalogue.schema("FiredEvent"), fired)
    life = {"outcome": "UNKNOWN", **records["LifecycleEvent"]}
    event = LifecycleEvent(**{**life, "outcome": Outcome(life["outcome"])})
    assert encode_lifecycle(event) == written(catalogue.schema("LifecycleEvent"), life)
    audit = catalogue.own_reader("AuditEvent").read(
        written(catalogue.schema("AuditEvent"), records["AuditEvent"])
    )
    assert encode_audit(audit_of(audit)) == written(catalogue.schema("AuditEvent"), audit)
    policy = records["TenantPolicy"]
    targets = tuple(map(http_target, policy.get("http_targets", ())))
    hosts = tuple(policy.get("allowed_hosts", ()))
    given = {**policy, "http_targets": targets, "allowed_hosts": hosts}
    assert encode_policy(TenantPolicy(**given)) == written(catalogue.schema("TenantPolicy"), policy)


def test_a_released_folder_is_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    assert golden.main(["9.9.9"]) == 0
    assert len(list((tmp_path / "9.9.9").iterdir())) == 5 * len(catalogue.names())
    assert golden.main(["9.9.9"]) == 1
    assert "never change" in capsys.readouterr().err
    assert golden.main([]) == 2
