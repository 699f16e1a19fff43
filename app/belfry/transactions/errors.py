"""The meaning of each error of a broker for a transaction, as a table with reasons.

    BUSY       the same broker takes it soon                    ask again, until the deadline
    MOVED      another broker is to be asked now                look it up, and ask again
    REFUSED    this topic does not take the record              roll back, and name the topic
    ABORT      the transaction cannot be committed              roll back
    FENCED     another producer has the transactional id        stop
    UNKNOWN    it is unknown how the transaction ended          give up, and take over anew

A code that has no line here is REFUSED if a partition answers with it, and UNKNOWN if a coordinator
does.  Before EndTxn was sent nothing can have become visible, so a roll-back that the broker
confirms is always right there.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Meaning(Enum):
    """What to do about an error."""

    FINE = "fine"
    BUSY = "busy"
    MOVED = "moved"
    REFUSED = "refused"
    ABORT = "abort"
    FENCED = "fenced"
    UNKNOWN = "unknown"


class Line(NamedTuple):
    """One error: its name in Kafka's protocol, its meaning, and the reason."""

    name: str
    meaning: Meaning
    why: str


NONE: Final = 0
UNTOLD: Final = -1
UNKNOWN_TOPIC: Final = 3
TOO_LARGE: Final = frozenset({10, 18})
NOT_COORDINATOR: Final = 16
BLOCKED: Final = 29
NOT_ATTEMPTED: Final = 55
# A request or its answer was lost: no code of the protocol, which are -1 and up.
LOST: Final = -2
# No broker leads the partition, or answers for the transactional id.
NOBODY: Final = -3
# A leader could not ask the transaction's coordinator whether it may append (`produce.py`).
NOT_VERIFIED: Final = -4
TOO_FEW_REPLICAS: Final = 19
# Errors that are not the partition's own: its broker gave no answer; or the transaction's
# coordinator, which the broker asks whether it may append, moves or still writes markers of the
# last transaction.
BLAMES_NOBODY: Final = frozenset({LOST, NOT_VERIFIED, 13, 14, 15, 16, 51, 52})
# Errors of brokers that know the cluster, while a coordinator moves. To find it needs no metadata
# of topics, which has 1.5 MB with 10 000 topics.
ANSWERED: Final = frozenset({"COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})
MAY_NOT: Final = "belfry may not write to its topic: allow it the operation WRITE"
NOT_LED: Final = "no broker leads it"

TABLE: Final[dict[int, Line]] = {
    NOT_VERIFIED: Line("NOT_VERIFIED", Meaning.BUSY, "its transaction's coordinator moves"),
    NOBODY: Line("NO_LEADER", Meaning.MOVED, NOT_LED),
    LOST: Line("NO_ANSWER", Meaning.MOVED, "a repeat has the same sequence, and is seen as one"),
    UNTOLD: Line("UNKNOWN_SERVER_ERROR", Meaning.ABORT, "the broker itself does not know"),
    NONE: Line("NONE", Meaning.FINE, "it is done"),
    UNKNOWN_TOPIC: Line("UNKNOWN_TOPIC_OR_PARTITION", Meaning.MOVED, "the topic is gone, or new"),
    2: Line("CORRUPT_MESSAGE", Meaning.MOVED, "it was damaged on its way"),
    5: Line("LEADER_NOT_AVAILABLE", Meaning.MOVED, "a leader is being elected"),
    6: Line("NOT_LEADER_OR_FOLLOWER", Meaning.MOVED, "another broker leads it now"),
    7: Line("REQUEST_TIMED_OUT", Meaning.BUSY, "replicas are slow; a repeat is seen as one"),
    10: Line("MESSAGE_TOO_LARGE", Meaning.REFUSED, "the topic takes no batch of this size"),
    13: Line("NETWORK_EXCEPTION", Meaning.MOVED, "the broker went away"),
    14: Line("COORDINATOR_LOAD_IN_PROGRESS", Meaning.BUSY, "it reads its state"),
    15: Line("COORDINATOR_NOT_AVAILABLE", Meaning.MOVED, "a coordinator is being elected"),
    NOT_COORDINATOR: Line("NOT_COORDINATOR", Meaning.MOVED, "another broker coordinates it now"),
    17: Line("INVALID_TOPIC_EXCEPTION", Meaning.REFUSED, "no topic can have this name"),
    18: Line("RECORD_LIST_TOO_LARGE", Meaning.REFUSED, "the topic takes no batch of this size"),
    TOO_FEW_REPLICAS: Line("NOT_ENOUGH_REPLICAS", Meaning.BUSY, "replicas may come back"),
    20: Line("NOT_ENOUGH_REPLICAS_AFTER_APPEND", Meaning.BUSY, "a repeat is seen as one"),
    BLOCKED: Line("TOPIC_AUTHORIZATION_FAILED", Meaning.REFUSED, MAY_NOT),
    31: Line("CLUSTER_AUTHORIZATION_FAILED", Meaning.UNKNOWN, "only a person can mend it"),
    45: Line("OUT_OF_ORDER_SEQUENCE_NUMBER", Meaning.ABORT, "a batch before it is missing"),
    46: Line("DUPLICATE_SEQUENCE_NUMBER", Meaning.ABORT, "it is there, at an unknown offset"),
    47: Line("INVALID_PRODUCER_EPOCH", Meaning.FENCED, "a later owner has the next epoch"),
    48: Line("INVALID_TXN_STATE", Meaning.ABORT, "it is not open at the coordinator"),
    49: Line("INVALID_PRODUCER_ID_MAPPING", Meaning.UNKNOWN, "the coordinator forgot the id"),
    50: Line("INVALID_TRANSACTION_TIMEOUT", Meaning.UNKNOWN, "the broker allows less"),
    51: Line("CONCURRENT_TRANSACTIONS", Meaning.BUSY, "markers of the last one are under way"),
    52: Line("TRANSACTION_COORDINATOR_FENCED", Meaning.MOVED, "another broker coordinates it"),
    53: Line("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", Meaning.UNKNOWN, "only a person mends it"),
    NOT_ATTEMPTED: Line("OPERATION_NOT_ATTEMPTED", Meaning.ABORT, "another partition was refused"),
    56: Line("KAFKA_STORAGE_ERROR", Meaning.MOVED, "its leader lost the disk"),
    59: Line("UNKNOWN_PRODUCER_ID", Meaning.ABORT, "the log has forgotten what came before"),
    74: Line("FENCED_LEADER_EPOCH", Meaning.MOVED, "another broker leads it now"),
    75: Line("UNKNOWN_LEADER_EPOCH", Meaning.MOVED, "the broker is behind"),
    87: Line("INVALID_RECORD", Meaning.REFUSED, "the topic takes no such record"),
    89: Line("THROTTLING_QUOTA_EXCEEDED", Meaning.BUSY, "a quota is used up for the moment"),
    90: Line("PRODUCER_FENCED", Meaning.FENCED, "a later owner has the next epoch"),
    120: Line("TRANSACTION_ABORTABLE", Meaning.ABORT, "the broker asks for it"),
}


def of_partition(code: int) -> Line:
    """The meaning of a partition's answer to Produce, or to AddPartitionsToTxn."""
    return TABLE.get(code) or Line(f"error {code}", Meaning.REFUSED, "it is not known here")


def of_coordinator(code: int) -> Line:
    """The meaning of a coordinator's answer to InitProducerId or EndTxn.

    An error that would mean a roll-back counts as UNKNOWN: the transaction may have ended already.
    """
    line = TABLE.get(code) or Line(f"error {code}", Meaning.UNKNOWN, "it is not known here")
    if line.meaning in (Meaning.ABORT, Meaning.REFUSED):
        return line._replace(meaning=Meaning.UNKNOWN)
    return line


def sentence(code: int) -> str:
    """An error as a sentence for people."""
    line = of_partition(code)
    return f"{line.name}: {line.why}"
