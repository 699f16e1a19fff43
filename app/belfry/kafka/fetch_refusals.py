"""Why brokers refuse a reader, in sentences that say what to do.

aiokafka logs why a connection was refused, but its user only learns that there is no connection. So
if no broker could be reached, one is asked once more, and its answer is reported: a wrong password
and an untrusted certificate look different, and time mends neither.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiokafka import errors
from aiokafka.conn import create_conn

# Seconds for a broker to accept a connection.
ANSWER_MS: Final = 5_000
# aiokafka's errors for a login that a broker refuses.
_LOGIN: Final = (
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
)


class NotLetIn(ConnectionError):
    """No broker lets this worker in, for a reason that needs an operator."""


def not_known(where: tuple[str, int], cluster: Any) -> ConnectionError:
    """The error for a partition that the brokers' metadata do not have.

    `cluster` is aiokafka's metadata. A topic that may not be read looks like a missing one, but
    stands in the list of refused topics.
    """
    if where[0] in cluster.unauthorized_topics:
        return _denied(where)
    return ConnectionError(f"{where[0]}/{where[1]}: no broker knows it")


def not_read(where: tuple[str, int], error: type[Exception]) -> ConnectionError:
    """The error for a partition whose leader answers with a lasting error."""
    if error is errors.TopicAuthorizationFailedError:
        return _denied(where)
    return ConnectionError(f"{where[0]}/{where[1]}: {error.__name__}")


def _denied(where: tuple[str, int]) -> ConnectionError:
    """The error for a topic that this user may not read, with what to do."""
    return ConnectionError(
        f"{where[0]}/{where[1]}: the brokers do not let this user read it"
        " (TOPIC_AUTHORIZATION_FAILED): give it the rights READ and DESCRIBE on the topic;"
        " `belfry acls` prints them"
    )


async def why_no_connection(servers: Sequence[str], security: Mapping[str, Any]) -> NotLetIn | None:
    """The refusal of the first of these servers that answers; None if time may mend it.

    `servers` are host:port. A server that does not answer at all is skipped, because it may be
    starting.
    """
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            connection = await create_conn(
                host.strip("[]"), int(port), request_timeout_ms=ANSWER_MS, **security
            )
        except _LOGIN as error:
            return NotLetIn(
                f"{server} does not let this worker in ({error}): look at BELFRY_KAFKA__SASL_…,"
                " and whether the broker knows this user"
            )
        except (ssl.SSLError, errors.KafkaError, OSError) as error:
            if (secure := _tls_error(error)) is not None:
                return NotLetIn(
                    f"no secure connection to {server} ({secure}): look at BELFRY_KAFKA__SSL_…,"
                    " and at the broker's certificate"
                )
        else:
            connection.close()
            return None
    return None


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The error of TLS behind another one, or None."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error
