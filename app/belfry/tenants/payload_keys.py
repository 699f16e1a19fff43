"""Keys of a tenant that encrypt its payloads at rest: the port that pure rooms use.

    request ─► encrypt ─► row of the changelog, local store, checkpoint, mirror
                            └► decrypt ─► fired record, answer of a lookup, export

An encrypted payload names its key. The newest key encrypts, and any present key decrypts:

    12:00   keys k1        encrypt ─► k1     decrypt k1
    13:00   keys k2, k1    encrypt ─► k2     decrypt k1 and k2
    14:00   keys k2        encrypt ─► k2     decrypt k2; payloads of k1 are `Undecryptable`

    format 1 │ id of the key │ AES-SIV (RFC 5297): 16 bytes of authentication, then the ciphertext
    ◄─ u8 ──►│◄─ 8 bytes ───►│◄─ 16 bytes more than the payload ─────────────────────────────────►

The cipher takes no nonce.  The first nine bytes and the name of the schedule are authenticated with
the payload, so no encrypted one counts under another name.  The same payload of the same schedule
under the same key gives the same bytes, wherever and whenever it is encrypted: so a step that is
done again and a playback make the same rows, and a request that is repeated changes nothing. A
reader of the rows sees the length of a payload, and whether a schedule has the same payload as
before.
"""

from __future__ import annotations

from typing import Final, Protocol

# Bytes by which encryption makes a payload longer.
ENCRYPTION_BYTES: Final = 25
_KEY_ID: Final = slice(1, 9)


class Undecryptable(ValueError):
    """An encrypted payload that cannot be read; the message says why and what to do."""


def key_id_of(encrypted: bytes) -> str:
    """The id of the key that has encrypted a payload, in 16 hexadecimal digits."""
    return encrypted[_KEY_ID].hex()


class PayloadKeys(Protocol):
    """The keys of one tenant; a value, whose calls depend on their arguments alone."""

    @property
    def newest(self) -> str:
        """The id of the key that encrypts, in 16 hexadecimal digits."""

    def encrypt(self, name: bytes, payload: bytes) -> bytes:
        """A payload of the schedule `name` (``tenant/id``), encrypted by the newest key."""

    def decrypt(self, name: bytes, encrypted: bytes) -> bytes:
        """The payload that was encrypted for this schedule; raises `Undecryptable`."""

    def digests(self, digest: bytes) -> tuple[bytes, ...]:
        """The digest of a request under each key, the newest first; none reveals its payload."""
