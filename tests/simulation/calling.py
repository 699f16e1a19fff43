"""Callers over HTTP: they write, ask again where they heard nothing, and look what came of it.

    POST, PUT, DELETE, …/trigger ─► some worker ─┬─ an answer that tells how it ended
                                                 ├─ 503, or no answer in time: once more, by the
                                                 │  same request id, to some worker
                                                 └─ a caller's patience ends: nobody asks any more
    GET …/schedules/x            ─► some worker ─── how it stands

Some calls are wrong on purpose, and have to leave nothing behind.  What workers write into the
topic of requests is read by the public schema, and becomes a request that its caller has sent; so
all other checks judge it, too.  `answered` judges the answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING, Any, Final

import fastavro

from tests.simulation import primitives
from tests.simulation.broker import Entry, Log
from tests.simulation.load import TENANTS
from tests.simulation.machine import Machine
from tests.simulation.sent import REQUEST, Sent
from tests.simulation.stage import Host, here

if TYPE_CHECKING:
    from tests.simulation.ports import Answer, Asked, Port
    from tests.simulation.world import World

HEAD_BYTES: Final = 10
# How long a caller waits for an answer, in seconds.
WAITS_S: Final = (0.4, 2.0, 2.0, 13.0)
PAUSES_MS: Final = (0.0, 30.0, 400.0, 1_500.0)
# By this chance a caller has only so many tries.
IMPATIENT: Final = 0.15
# By this chance the way back is lost, until all faults end.
UNHEARD: Final = 0.08
LOOKS: Final = 0.6
TRIES: Final = 8
UNAVAILABLE: Final = 503
# What is asked for, as often as it stands here.
KINDS: Final = (
    *("post", "post", "post", "put", "put", "put", "put_new", "put_match", "put_match"),
    *("cancel", "cancel", "cancel", "trigger", "told", "many", "wrong"),
)
ACTIONS: Final = {"post": "CREATE", "told": "CREATE", "put_new": "CREATE"} | {
    "many": "CREATE", "put": "UPSERT", "put_match": "UPSERT", "cancel": "CANCEL",
    "trigger": "TRIGGER", "wrong": "",
}  # fmt: skip
JSON: Final = (("content-type", "application/json"),)
LINES: Final = (("content-type", "application/x-ndjson"),)


@dataclass(eq=False, slots=True)
class Call:
    """Something that a caller wants done; `answers` are those that it heard."""

    name: str
    kind: str
    tenant: str
    schedule_id: str
    action: str
    fields: dict[str, Any]
    request_id: str
    asked: Asked
    answers: list[tuple[Answer, str]] = field(default_factory=list)
    tries: int = 0
    settled: bool = False
    given_up: bool = False
    # Records of this call that lie in the log, with the worker that wrote each.
    records: list[Sent] = field(default_factory=list)
    by: list[str] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Look:
    """An answer to a GET: decided transactions before it was asked, and when it was answered."""

    tenant: str
    schedule_id: str
    begun: int
    answer: Answer


@dataclass(eq=False, slots=True)
class Written:
    """A record that a worker writes for a caller."""

    calling: Calling
    machine: Machine
    value: bytes

    def lies(self, log: Log, entry: Entry) -> None:
        """It lies in the topic of requests now."""
        self.calling.lies(self.machine, log, entry)

    def heard(self, error: Any) -> None:
        """The worker is told."""
        if error is not None:
            self.calling.struck.append("broker did not acknowledge")


class Calling:
    """All callers of a world, and the ports of its workers by their names."""

    def __init__(self, world: World, random: Random) -> None:
        self.world, self.random = world, random
        self.host = Host("callers")
        self.ports: dict[str, Port] = {}
        self.calls: list[Call] = []
        self.looks: list[Look] = []
        self.struck: list[str] = []
        self.problems: list[str] = []
        self._by_id: dict[str, Call] = {}
        self._healed = False

    def heal(self) -> None:
        """All answers are heard from now on."""
        self._healed = True

    def settled(self) -> bool:
        """Whether each call has been answered, or its caller has gone."""
        return all(call.settled or call.given_up for call in self.calls)

    # -- what is asked -----------------------------------------------------------------------------

    def begin(self) -> None:
        """A caller wants something."""
        kind = self.random.choice(KINDS)
        calls = self._many() if kind == "many" else [self._drawn(kind)]
        self.calls += calls
        self._by_id |= {call.request_id: call for call in calls}
        self.world.stage.spawn("caller", lambda: self._call(calls), self.host)

    def _drawn(self, kind: str) -> Call:
        from tests.simulation.ports import Asked

        number, random = len(self.calls), self.random
        name, tenant = f"h{number}", random.choice(TENANTS)
        shared = random.random() < 0.75
        schedule_id = f"h-{random.choice('vwxyz')}" if shared else f"own/{number}"
        fields: dict[str, Any] = {}
        body: dict[str, Any] = {}
        action, request_id, query = ACTIONS[kind], f"http-{number}", ""
        headers: tuple[tuple[str, str], ...] = ()
        if action in ("CREATE", "UPSERT", ""):
            at_ms = self.world.broker.now_ms() + random.randint(-500, 9_000)
            fields = {"at": at_ms, "group": random.choice((None, None, "g1"))}
            body = {"at": at_ms, "group": fields["group"], "payload_text": name}
            body["request_id"], headers = request_id, JSON
        if kind in ("put_new", "put_match"):
            version = random.randint(1, 2)
            fields["expected_version"] = version
            condition = (
                ("if-none-match", "*") if kind == "put_new" else ("if-match", f'"{version}"')
            )
            headers += (condition,)
        path = f"/v1/tenants/{tenant}/schedules"
        method = "POST"
        if kind in ("post", "told"):
            body["schedule_id"] = schedule_id
            query = "wait=none" if kind == "told" else ""
        else:
            path += f"/{schedule_id.replace('/', '%2F')}"
            method = {"cancel": "DELETE", "trigger": "POST"}.get(kind, "PUT")
        if kind in ("cancel", "trigger"):
            query = f"request_id={request_id}"
            path += "/trigger" if kind == "trigger" else ""
        raw = json.dumps(body).encode() if body else b""
        if kind == "wrong":
            raw, headers = self._spoilt(body)
        asked = Asked(method, path, query, headers, raw)
        return Call(name, kind, tenant, schedule_id, action, fields, request_id, asked)

    def _spoilt(self, body: dict[str, Any]) -> tuple[bytes, tuple[tuple[str, str], ...]]:
        """A body that no worker may take."""
        which = self.random.randrange(5)
        if which == 0:
            return json.dumps(body).encode()[:-1], JSON
        if which == 1:
            return json.dumps(body).encode(), (("content-type", "text/plain"),)
        wrong: tuple[dict[str, Any], ...] = ({"due": 3}, {"at": "tomorrow"}, {"delay_ms": 5})
        return json.dumps(body | wrong[which - 2]).encode(), JSON

    def _many(self) -> list[Call]:
        """Some new schedules of one tenant in one call, a line each."""
        from tests.simulation.ports import Asked

        several = [self._drawn("post")]
        tenant = several[0].tenant
        lines = [several[0].asked.body]
        for number in range(len(self.calls) + 1, len(self.calls) + 1 + self.random.randint(1, 3)):
            at_ms = self.world.broker.now_ms() + self.random.randint(0, 9_000)
            call = Call(
                *(f"h{number}", "many", tenant, f"own/{number}", "CREATE", {"at": at_ms}),
                *(f"http-{number}", several[0].asked),
            )
            said = {"schedule_id": call.schedule_id, "at": at_ms, "payload_text": call.name}
            lines.append(json.dumps(said | {"request_id": call.request_id}).encode())
            several.append(call)
        path = several[0].asked.path
        asked = Asked("POST", path, "", LINES, b"\n".join(lines))
        for call in several:
            call.asked, call.kind = asked, "many"
        return several

    # -- who asks ----------------------------------------------------------------------------------

    def _call(self, calls: list[Call]) -> None:
        """Ask until it is known what became of all of them, or patience ends."""
        tries = self.random.randint(1, 3) if self.random.random() < IMPATIENT else 0
        first = calls[0]
        while True:
            port, answer = self._ask(first.asked)
            for call in calls:
                call.tries += 1
            if answer is not None:
                self._hear(calls, answer, port)
            if all(call.settled for call in calls):
                break
            if tries and first.tries >= tries:
                self.struck.append("caller gave up")
                for call in calls:
                    call.given_up = not call.settled
                return
            self.struck.append("called again")
            here().sleep(self.random.choice(PAUSES_MS))
        if first.kind != "wrong" and self.random.random() < LOOKS:
            self._look(self.random.choice(calls))

    def _hear(self, calls: list[Call], answer: Answer, port: str) -> None:
        """Note an answer; one of several lines is as many answers."""
        from tests.simulation.ports import Answer as One

        if len(calls) == 1 or answer.status != 200:
            parts = [answer] * len(calls)
        else:
            lines = [line for line in answer.body.split(b"\n") if line]
            left = answer.decided, answer.at_ms
            parts = [One(json.loads(each)["status"], {}, each, *left) for each in lines]
        for call, part in zip(calls, parts, strict=True):
            if call.settled:
                continue
            call.answers.append((part, port))
            told = json.loads(part.body or b"{}")
            call.settled = part.status != UNAVAILABLE or told.get("outcome") is not None
            if part.status == UNAVAILABLE:
                self.struck.append(f"answered {told.get('code')}".replace("_", " "))

    def _look(self, call: Call) -> None:
        """Read it, of any worker."""
        from tests.simulation.ports import Asked

        named = call.schedule_id.replace("/", "%2F")
        asked = Asked("GET", f"/v1/tenants/{call.tenant}/schedules/{named}")
        for _ in range(TRIES):
            begun = self.world.broker.decided
            _, answer = self._ask(asked)
            if answer is not None and answer.status != UNAVAILABLE:
                self.looks.append(Look(call.tenant, call.schedule_id, begun, answer))
                self.struck.append("looked")
                return
            here().sleep(self.random.choice(PAUSES_MS))

    def _ask(self, asked: Asked) -> tuple[str, Answer | None]:
        """Ask some worker: which one, and its answer, None where none is heard in time."""
        name = f"m{self.random.randrange(self.world.scenario.machines)}"
        heard, came = primitives.SimEvent(), list[Any]()

        def back(answer: Any) -> None:
            came.append(answer)
            heard.set()

        self.carry(None, name, asked, back)
        heard.wait(self.random.choice(WAITS_S))
        return name, came[0] if came else None

    # -- the network -------------------------------------------------------------------------------

    def carry(self, by: Machine | None, name: str, asked: Asked, back: Any) -> None:
        """Carry a call to a worker and its answer back; None where nothing takes a connection."""
        stage, weather = self.world.stage, self.world.weather

        def is_cut() -> bool:
            return any(
                each.machine.cut
                for each in self.world.workers
                if each.machine is by or each.machine.name == name
            )

        def arrive() -> None:
            port = self.ports.get(name)
            if is_cut():
                return
            if port is None or not port.listens:
                stage.later(weather.latency_ms(), lambda: back(None))
                return
            port.take(asked, leave)

        def leave(answer: Answer) -> None:
            if not self._healed and self.random.random() < UNHEARD:
                self.struck.append("answer lost")
                return
            stage.later(weather.latency_ms(), lambda: None if is_cut() else back(answer))

        stage.later(weather.latency_ms(), arrive)

    # -- what workers write ------------------------------------------------------------------------

    def written(self, by: Machine, _topic: str, value: Any) -> Written:
        """A worker gives a record to its client."""
        return Written(self, by, value)

    def lies(self, by: Machine, log: Log, entry: Entry) -> None:
        """A request lies in the log: it is one that its caller has sent."""
        asked: Any = fastavro.schemaless_reader(
            BytesIO((entry.value or b"")[HEAD_BYTES:]), REQUEST, None
        )
        call = self._by_id.get(asked["request_id"])
        if call is None or call.kind == "wrong":
            self.problems.append(f"I45 {asked['request_id']} was written, and nobody asked for it")
            return
        sent = Sent(
            call.name, call.tenant, call.schedule_id, call.action, call.fields, call.request_id,
            log.partition, entry.offset, appended_ms=entry.timestamp_ms, value=entry.value or b"",
            once=True,
        )  # fmt: skip
        call.records.append(sent)
        call.by.append(by.name)
        if len(call.records) > 1:
            self.struck.append("written again")
        load = self.world.load
        load.sent.append(sent)
        if call.action != "CANCEL" and "at" in call.fields:
            load.expect(call.fields["at"])
