"""The world that a partition's state belongs to, and how evidence about it may contradict.

State is kept in one topic (the changelog) and says how far another one (the input) was read.  Both
can be deleted and made anew under the same name; the state would then be about topics that are
gone.  So the ids of both, and of the cluster, are kept with the state:

    changelog      a row of its own, written with the first manifest
    local state    the same row, folded; and the stamp, which says which changelog was folded
    the anchor     beside both: metadata of an offset of a group, which outlives either topic

`generation` counts the recoveries by hand.  Local state of an earlier generation is superseded: it
is rebuilt, and contradicts nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from belfry.store.layout.records import IDENTITY, UnknownFormat

# The id from a cluster without topic ids (before Kafka 2.8, and some that are not Kafka): all zero.
UNKNOWN_ID: Final = "A" * 22
# The contradiction of a changelog that another cluster wrote.
OTHER_CLUSTER: Final = "other_cluster"
# A format of its own: a release whose other rows are new still reads rows of this one.
_IDENTITY_FORMAT: Final = 1
_HEAD: Final = bytes((_IDENTITY_FORMAT, IDENTITY))
_NAMES: Final = ("cluster", "changelog", "schedules", "generation")


class Identity(NamedTuple):
    """Ids of the Kafka cluster and of the topics of state and input, and the generation."""

    cluster: str
    changelog: str
    schedules: str
    generation: int = 0

    def same_world(self, other: Identity) -> bool:
        """Whether all three ids are equal, whatever the generations."""
        pairs = (
            (self.cluster, other.cluster),
            (self.changelog, other.changelog),
            (self.schedules, other.schedules),
        )
        return not any(differ(mine, its) for mine, its in pairs)

    def filled(self, here: Identity) -> Identity:
        """The same with the ids of topics that were unknown when it was kept."""
        return self._replace(
            changelog=here.changelog if self.changelog == UNKNOWN_ID else self.changelog,
            schedules=here.schedules if self.schedules == UNKNOWN_ID else self.schedules,
        )


def differ(one: str, other: str) -> bool:
    """Whether two ids are those of different things; an unknown one contradicts none."""
    return one != other and UNKNOWN_ID not in (one, other)


class Contradiction(Exception):
    """Evidence about a partition contradicts itself: it stops until somebody chooses.

    `code` names the case in docs/recovery.md; the message names the choices.
    """

    def __init__(self, code: str, what: str, choices: str) -> None:
        super().__init__(f"{code}: {what} Nothing is fired until somebody chooses: {choices}")
        self.code = code
        self.what = what
        self.choices = choices


def encode_identity(identity: Identity) -> bytes:
    """The row of the changelog."""
    return _HEAD + identity_text(identity).encode()


def decode_identity(row: bytes) -> Identity:
    """The identity in a row; UnknownFormat if this version cannot read it."""
    if row[:2] != _HEAD:
        raise UnknownFormat(
            f"The identity of a partition starts with {row[:2].hex()!r}; this version reads"
            f" {_HEAD.hex()!r}. Run the version that wrote it, or a newer one."
        )
    return identity_of(row[2:])


def identity_text(identity: Identity) -> str:
    """The identity as JSON: the content of the anchor, and of a row behind its head."""
    return orjson.dumps(dict(zip(_NAMES, identity, strict=True))).decode()


def identity_of(text: str | bytes) -> Identity:
    """The identity in such a JSON; names that this version does not know are passed over.

    UnknownFormat if the bytes are not an identity.
    """
    try:
        told = orjson.loads(text)
        cluster, changelog, schedules = told["cluster"], told["changelog"], told["schedules"]
        found = Identity(cluster, changelog, schedules, told.get("generation", 0))
        if tuple(map(type, found)) != (str, str, str, int):
            raise TypeError("a field is of another type")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnknownFormat(
            f"What is kept as the identity of a partition is none, {text[:60]!r} ({error}). Run the"
            " version that wrote it, or a newer one; where none did, docs/recovery.md has choices."
        ) from error
    return found


def logged_contradiction(here: Identity, logged: Identity) -> Contradiction | None:
    """What is wrong where the changelog says that it belongs to another world than this one."""
    if differ(logged.cluster, here.cluster):
        return Contradiction(
            OTHER_CLUSTER,
            f"the changelog was written in cluster {logged.cluster}, and this is {here.cluster}:"
            " it was copied or mirrored, and its offsets are those of another input topic.",
            "where `belfry mirror` joins the two, the other one is the active side until `belfry"
            " mirror take-over`; else connect to the right cluster, or adopt the copy with `belfry"
            " recover --from log --accept-input`.",
        )
    if differ(logged.changelog, here.changelog):
        return Contradiction(
            "changelog_copied",
            f"the changelog says that it is topic {logged.changelog}, and it is"
            f" {here.changelog}: its records were copied from a topic that is gone.",
            "adopt the copy with `belfry recover --from log`, or recover from local state with"
            " `belfry recover --from local --data-dir DIR`.",
        )
    if differ(logged.schedules, here.schedules):
        return Contradiction(
            "input_anew",
            f"the input topic is {here.schedules}, and requests were read from"
            f" {logged.schedules}: it was deleted and created anew, so the stored position is"
            " none of this topic's.",
            "read the new topic from its beginning with `belfry recover --accept-input`.",
        )
    return None


def lost_changelog(here: Identity, was: str, held: str) -> Contradiction:
    """The changelog is empty, and evidence says that there was one: `held` says which evidence."""
    return Contradiction(
        "changelog_lost",
        f"the changelog (topic {here.changelog}) holds nothing, and {held} in topic {was}: it was"
        " deleted, created anew or emptied.",
        "recover with `belfry recover --from local --data-dir DIR`, or from a backup with"
        " `belfry recover --backup FILE`, or begin with nothing: `belfry recover --from"
        " nothing`. Where this data directory is another belfry's, move it away.",
    )


def foreign_state(here: Identity, was: str, held: str) -> Contradiction:
    """Nothing was ever kept here, and the local state is that of another cluster."""
    return Contradiction(
        OTHER_CLUSTER,
        f"the changelog holds nothing in this cluster, {here.cluster}, and {held} in cluster"
        f" {was}.",
        "connect to the right cluster, or move the data directory away, or, where the cluster was"
        " made anew, recover with `belfry recover --from local --accept-input --data-dir DIR`.",
    )


def truncated_log(end: int, offset: int) -> Contradiction:
    """The local state has read further than the changelog goes."""
    return Contradiction(
        "log_truncated",
        f"the changelog ends at offset {end}, and the local state has read it up to offset"
        f" {offset}: committed transactions are gone from it, as after an unclean election.",
        "recover what the local state has kept with `belfry recover --from local --data-dir DIR`,"
        " or give it up with `belfry recover --from log --data-dir DIR`.",
    )


def lost_requests(partition: int, position: int, low: int, end: int) -> Contradiction | None:
    """What is wrong where the stored position is none that the input holds."""
    if position < low:
        return Contradiction(
            "requests_lost",
            f"the input begins at offset {low}, and requests from offset {position} to {low - 1}"
            " are gone before they were read.",
            f"accept that with `belfry recover --accept-lost {partition}:{position}-{low - 1}`.",
        )
    if position > end:
        return Contradiction(
            "input_truncated",
            f"the input ends at offset {end}, and requests were read up to offset {position}:"
            " records are gone from it, as after an unclean election.",
            "go on at its end with `belfry recover --accept-input`.",
        )
    return None
