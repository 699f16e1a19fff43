"""What HTTP shows of belfry.rejected, belfry.undelivered and belfry.deliveries.

Each look goes back from the end of a topic in stretches, which grow while they find little, until
enough is found or so many offsets have been looked at. The next look goes on where it ended.

    offsets of a partition   …  9 100 ──────── 9 900 ─── 9 975 ── 10 000 (its end)
    stretches                    … 200 │ 100 │   50    │    25
    ends after                   50 finds, 5 000 offsets, or the begin of the topic

So the newest come first and a look costs a bounded time, however long the topic is.

A refused request is shown as far as it can be read, with credentials masked. One in Avro that
cannot be read is shown by its first bytes alone, for nobody knows what lies behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import Message

from belfry.api.workers.kept import (
    MOST_USAGE_RECORDS,
    Before,
    KeptDelivery,
    KeptPage,
    ReadableValue,
    RejectedRequest,
)
from belfry.client.decoding import Decoder, Look
from belfry.client.errors import MissingTopic, Unavailable
from belfry.client.kafka import Cluster
from belfry.client.usage import UsageLimits, UsageSpan, read_usage
from belfry.delivery.dead_letters import Letter
from belfry.delivery.kept import LatestDeliveries
from belfry.kafka.record_headers import headers_of
from belfry.kafka.topic_tail import TopicTail
from belfry.process.readable import avro_in, request_in
from belfry.registry.subjects import look_in, open_registry
from belfry.schedules.header_secrets import carries_credentials
from belfry.schedules.masking import MASK, masked_target, masked_url
from belfry.settings import SharedSettings
from belfry.wire.framing import FrameKind, read_frame
from belfry.wire.metering import Usage
from belfry.wire.record import SIGNATURE, Headers

T = TypeVar("T")

# Finds after which a look ends.
ENOUGH: Final = 50
# Offsets that one look goes back through, of all partitions together.
MOST_OFFSETS: Final = 5_000
# Offsets of the first stretch; each further one is twice as long, up to the longest.
FIRST_STRETCH: Final = 25
LONGEST_STRETCH: Final = 1_600
# Most bytes of a key, a payload or a header that are shown.
SAMPLE_BYTES: Final = 2_048
# Of a value that cannot be read: its frame, and hardly more.
UNREAD_BYTES: Final = 32
MOST_HEADERS: Final = 50
# Seconds for which usage may be read before it is said that it is too much.
USAGE_S: Final = 10.0
_ERROR: Final = "belfry-error-"


class ReadKeptTopics:
    """Reads what topics keep, for HTTP; blocks, and any thread may call it.

    Each call makes a consumer of its own, without a group. Methods raise ConnectionError where
    brokers do not answer. `now_ms` is the clock, in epoch ms.
    """

    def __init__(self, settings: SharedSettings, now_ms: Callable[[], float]) -> None:
        """`settings` lead to Kafka and the registry."""
        self._settings = settings
        self._look = look_in(open_registry(settings))
        self._deliveries = LatestDeliveries(settings, now_ms)

    def rejected(self, tenant: str | None, before: Before | None) -> KeptPage[RejectedRequest]:
        """Refused requests of a tenant; None: of all, also those of which nobody is known.

        `before` says where an earlier look ended, None for the end of the topic. The newest come
        first.
        """
        read = RejectedReader(self._look)

        def short(message: Message) -> RejectedRequest | None:
            return read.of(message, tenant)

        page = self._page("rejected", before, short)
        return KeptPage(sorted(page.found, key=_when, reverse=True), page.examined, page.rest)

    def dead_letters(self, tenant: str, before: Before | None) -> KeptPage[KeptDelivery]:
        """A tenant's deliveries that were given up."""
        read = self._deliveries.reader()

        def short(message: Message) -> KeptDelivery | None:
            placed = read(message)
            if placed is None or placed.letter.work.event.tenant != tenant:
                return None
            partition, offset, letter = placed
            return _delivery(letter, "given_up", (partition, offset))

        page = self._page("undelivered", before, short)
        return KeptPage(sorted(page.found, key=_when, reverse=True), page.examined, page.rest)

    def open_deliveries(self, tenant: str) -> KeptPage[KeptDelivery]:
        """A tenant's deliveries without an end, among the latest ones; the newest first, at most
        200.
        """
        found, examined = self._deliveries.without_end(tenant)
        shown = [_delivery(letter, letter.code, None) for letter in found]
        return KeptPage(sorted(shown, key=_when, reverse=True)[: 4 * ENOUGH], examined, None)

    def usage(self, asked: UsageSpan) -> list[Usage]:
        """What a tenant used, by period, as the metering topic has it."""
        properties = self._settings.kafka_properties()
        cluster = Cluster(properties.pop("bootstrap.servers"), properties)
        limits = UsageLimits(MOST_USAGE_RECORDS, USAGE_S)
        try:
            return read_usage(cluster, self._settings.topic("metering"), asked, limits)
        except MissingTopic:
            raise
        except Unavailable as error:
            raise ConnectionError(str(error)) from error

    def request(
        self, tenant: str, topic: str | None, place: tuple[int, int]
    ) -> Mapping[str, Any] | None:
        """The fields of a tenant's request at a place of the request topic, masked."""
        name = self._settings.topic("schedules")
        if topic not in (None, name):
            return None
        with TopicTail(self._settings.kafka_properties(), name) as tail:
            message = tail.one(*place)
        found = None if message is None else request_in(message, self._look)
        return _shown(found) if found is not None and found["tenant"] == tenant else None

    def avro(self, value: bytes) -> ReadableValue:
        """What bytes say by the Avro schema that they name; raises `UnreadableValue`."""
        return avro_in(value, self._look)

    def replay(self, tenant: str, place: tuple[int, int]) -> bool:
        """Deliver again what was given up and lies at this place (partition, offset); whether it is
        there.
        """
        return self._deliveries.replay(tenant, *place)

    def _page(
        self, topic: str, before: Before | None, short: Callable[[Message], T | None]
    ) -> KeptPage[T]:
        """Look back until enough is found; `short` makes a record what is shown, or None."""
        found: list[T] = []
        examined, offsets = 0, FIRST_STRETCH
        properties, name = self._settings.kafka_properties(), self._settings.topic(topic)
        with TopicTail(properties, name, before) as tail:
            while not tail.is_over and len(found) < ENOUGH and examined < MOST_OFFSETS:
                read = tail.stretch(offsets, short)
                # Markers of transactions count as well, so that a look ends whatever lies there.
                examined += max(len(read), offsets)
                found += [each for each in read if each is not None]
                offsets = min(2 * offsets, LONGEST_STRETCH)
            return KeptPage(found, examined, None if tail.is_over else dict(tail.rest))


class RejectedReader:
    """Records of belfry.rejected to what may be shown of them."""

    def __init__(self, look: Look | None) -> None:
        """`look` knows writers' schemas."""
        self._decoder = Decoder("ScheduleRequest", look, only=False)

    def of(self, message: Message, tenant: str | None) -> RejectedRequest | None:
        """The request in a record; None for one that is not this tenant's."""
        (found,) = headers_of([message])
        own, said = _apart(found or [])
        whose = _text(said.get(f"{_ERROR}tenant")) or None
        if tenant is not None and whose != tenant:
            return None
        value = message.value()
        fields = None if value is None else self._decoder.record(value, own)
        return RejectedRequest(
            at_ms=message.timestamp()[1],
            tenant=whose,
            code=_text(said.get(f"{_ERROR}code")),
            reason=_text(said.get(f"{_ERROR}reason")),
            source=(
                _text(said.get(f"{_ERROR}topic")),
                _number(said.get(f"{_ERROR}partition")),
                _number(said.get(f"{_ERROR}offset")),
            ),
            key=None if message.key() is None else _bytes(message.key())[:SAMPLE_BYTES],
            headers=tuple(map(_masked_header, own[:MOST_HEADERS])),
            size_bytes=len(value or b""),
            request=None if fields is None else _shown(fields),
            sample=None if fields is not None else _sample(value, own),
        )


def _apart(headers: Headers) -> tuple[Headers, dict[str, bytes | None]]:
    """The headers as received, and those that were added.

    Whoever wrote the request may have given it headers of the same names: belfry's come last.
    """
    codes = [n for n, (name, _) in enumerate(headers) if name == f"{_ERROR}code"]
    first = codes[-1] if codes else len(headers)
    return headers[:first], dict(headers[first:])


def _sample(value: bytes | None, headers: Headers) -> bytes | None:
    """The beginning of a value that is no request that can be read."""
    if value is None:
        return None
    framed = read_frame(value, headers).kind is not FrameKind.UNFRAMED
    return value[: UNREAD_BYTES if framed else SAMPLE_BYTES]


def _shown(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that say something, without what may be a credential."""
    found = {name: value for name, value in fields.items() if value not in (None, [], b"")}
    if "http_targets" in found:
        found["http_targets"] = [masked_target(each) for each in found["http_targets"]]
    if "headers" in found:
        given = [(each["name"], each["value"]) for each in found["headers"][:MOST_HEADERS]]
        found["headers"] = [list(_masked_header(each)) for each in given]
    for name in ("key", "payload"):
        if name in found:
            found[name] = found[name][:SAMPLE_BYTES]
    return found


def _masked_header(header: tuple[str, bytes | None]) -> tuple[str, bytes | None]:
    """A header whose value is hidden where it may be a credential or signs the request."""
    name, value = header
    if name == SIGNATURE or carries_credentials(name):
        return name, MASK.encode()
    return name, None if value is None else value[:SAMPLE_BYTES]


def _delivery(letter: Letter, state: str, place: tuple[int, int] | None) -> KeptDelivery:
    """A delivery as it is shown; `place` is where it lies, for a replay, None where there is
    none.
    """
    event, delivery = letter.work.event, letter.work.state
    return KeptDelivery(
        tenant=event.tenant,
        schedule_id=event.schedule_id,
        fire_id=event.fire_id,
        at_ms=letter.at_ms,
        fired_ms=event.fired_at,
        state=state,
        code=letter.code,
        reason=letter.reason,
        attempt=delivery.attempt,
        attempts=delivery.attempts,
        targets=tuple(masked_url(each.url) for each in delivery.targets),
        place=place,
    )


def _when(each: RejectedRequest | KeptDelivery) -> int:
    return each.at_ms


def _text(value: bytes | None) -> str:
    """A header as text; bytes that are no UTF-8 are replaced."""
    return (value or b"").decode(errors="replace")


def _number(value: bytes | None) -> int | None:
    """A header as a number, None where it is none."""
    return int(value) if value is not None and value.isdigit() else None


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)
