"""Reads all places that may hold payloads of a tenant, for `belfry payloads readable`.

The changelog is read from the begin of its log, with rows that were replaced and are not compacted
yet. Each topic is read to the end that it had when its reading began, behind open transactions,
which are waited for. A record that cannot be read ends the command, so none is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from belfry.cli.failures import CommandError
from belfry.cli.verified_topics import quick_cluster
from belfry.cli.verify_topics import TopicReader
from belfry.client.fired_record import FiredRecord
from belfry.client.kafka import headers_of
from belfry.outputs.stored_payloads import StoreAway, SweptStore
from belfry.tenants.topic_names import LETTERS

if TYPE_CHECKING:
    from confluent_kafka import Message

    from belfry.cli.payload_traces import PayloadTraces
    from belfry.cli.session import Session

STORE: Final = "payload store"


def read_all(
    session: Session, tenant: str, also: list[str], outputs: list[str], traces: PayloadTraces
) -> None:
    """Tell `traces` of all that there is.

    Events are in `also`, in `outputs` as far as these topics are still there, and in the tenant's
    default one.  Raises `CommandError` where a topic of `also` or of the settings is not there, or
    the store does not answer.
    """
    topic = session.settings.topic
    reader = TopicReader(quick_cluster(session))
    try:
        there = reader.topics()
        missing = sorted({*also, topic("changelog")} - there.keys())
        if missing:
            raise CommandError(
                f"There is no topic {', '.join(missing)}: see what --topic names, and whether"
                " belfry's topics have another prefix (BELFRY_CLUSTER__TOPIC_PREFIX)."
            )
        sorts = {
            _row: [topic("changelog")],
            _request: [topic("schedules"), topic("rejected")],
            _own_request: [topic(f"{kind}.{tenant}") for kind in ("schedules", LETTERS)],
            _event: [topic(f"fired.{tenant}"), topic("fired"), *also, *outputs],
            _delivery: [topic("deliveries"), topic("undelivered")],
        }
        for take, names in sorts.items():
            parts = {name: there[name] for name in names if name in there}
            starts = {
                (name, partition): span.low
                for name, spans in reader.spans(parts).items()
                for partition, span in spans.items()
            }
            for messages in reader.read(starts, reader.log_ends(parts)):
                for message in messages:
                    take(traces, message)
    finally:
        reader.close()
    _read_store(session, tenant, traces)


def _row(traces: PayloadTraces, message: Message) -> None:
    traces.row(message.topic() or "", message.key() or b"", message.value())


def _request(traces: PayloadTraces, message: Message, *, own: bool = False) -> None:
    place = message.offset() or 0, message.timestamp()[1]
    record = (*place, message.key(), message.value(), headers_of(message))
    traces.request(message.topic() or "", record, own=own)


def _own_request(traces: PayloadTraces, message: Message) -> None:
    _request(traces, message, own=True)


def _event(traces: PayloadTraces, message: Message) -> None:
    traces.event(_fired(message))


def _delivery(traces: PayloadTraces, message: Message) -> None:
    traces.delivery(_fired(message))


def _fired(message: Message) -> FiredRecord:
    place = message.topic() or "", message.partition() or 0, message.offset() or 0
    return FiredRecord(*place, None, message.key(), message.value(), headers_of(message))


def _read_store(session: Session, tenant: str, traces: PayloadTraces) -> None:
    """Look at the first bytes of each stored payload; without a store none can be told."""
    from belfry.host.object_store import NoStore
    from belfry.outputs.payload_store import payload_files
    from belfry.settings import Settings

    try:
        files, path = payload_files(session.settings_of(Settings, {}, all_names=False))
        if files is None:
            traces.no_store(STORE)
        else:
            traces.store_read = True
            store = SweptStore(files, path)
            _heads((store.there.heads(tenant), store.aside.heads(tenant)), traces)
    except (NoStore, StoreAway) as error:
        raise CommandError(f"BELFRY_PAYLOAD_STORE cannot be read: {error}") from None


def _heads(folders: Iterable[Iterable[bytes]], traces: PayloadTraces) -> None:
    for heads in folders:
        for head in heads:
            traces.stored(STORE, head)
