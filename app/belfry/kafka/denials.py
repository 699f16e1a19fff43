"""Missing rights of a principal, in a sentence with the command that grants them.

    User:payments may not Read topic belfry.fired.payments. Grant it: kafka-acls.sh … --add …

Brokers tell a client that something is denied, but not which principal they take it for. With a
password the principal is the user's name, with only a certificate its subject (RFC 4514). With a
token or a ticket the name is left open, and the reader has to fill it in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from belfry.kafka.rights import CLUSTER, Right, commands

ANONYMOUS: Final = "ANONYMOUS"
# In place of a name that only the brokers know, by the kind of credential.
SUBJECT: Final = "<the subject of its token>"
_OF_A_CERTIFICATE: Final = "<the subject of its certificate>"
_OF_A_TICKET: Final = "<its Kerberos name>"


def user_of(properties: Mapping[str, Any]) -> str:
    """The principal of a client, by librdkafka's properties, without `User:` before it."""
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    if "SASL" in protocol:
        given = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI"))
        mechanism = str(given).upper()
        if mechanism == "OAUTHBEARER":
            return SUBJECT
        return _OF_A_TICKET if mechanism == "GSSAPI" else str(properties.get("sasl.username", ""))
    if "SSL" in protocol:
        return _subject(properties)
    return ANONYMOUS


def _subject(properties: Mapping[str, Any]) -> str:
    """The subject of the client's certificate; brokers know no principal without one."""
    pem, path = properties.get("ssl.certificate.pem"), properties.get("ssl.certificate.location")
    if not pem and not path:
        return _OF_A_CERTIFICATE if properties.get("ssl.keystore.location") else ANONYMOUS
    from cryptography.x509 import load_pem_x509_certificate

    try:
        shown = str(pem).encode() if pem else Path(str(path)).read_bytes()
        return load_pem_x509_certificate(shown).subject.rfc4514_string()
    except (OSError, ValueError, TypeError):
        return _OF_A_CERTIFICATE


def denial(user: str, right: Right, names: Sequence[str], servers: str) -> tuple[str, str]:
    """The denied operations on resources, and the command that grants them.

    `right` has the missing operations, and the resource as the command is to name it.
    """
    kind = right.kind.replace("-", " ")
    first = "the cluster" if right.kind == CLUSTER else f"{kind} {names[0]}"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    operations = ", ".join(right.operations)
    return f"User:{user} may not {operations} {first}{more}", next(commands([right], user, servers))


def sentence(user: str, operation: str, kind: str, name: str, servers: str) -> str:
    """The same of one operation on one resource, as one sentence."""
    told, command = denial(user, Right(kind, name, False, (operation,), ""), [name], servers)
    return f"{told}. Grant it: {command}"
