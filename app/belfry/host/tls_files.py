"""Certificates, keys and authorities in files, which are read again when they are renewed.

    connection ─► files changed? ─┬ no                ─► the context that is there
                                  └ yes: read them    ─┬ they can be used  ─► a new context, noted
                                                       └ they cannot       ─► the old one, and why

A connection negotiates its keys by a context.  A context is never changed once it is in use: a
connection keeps the context that it began with, and the next connection gets the new one.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from belfry.host import machine
from belfry.host.file_watch import FileWatch

log = structlog.get_logger(__name__)


class RenewedContext:
    """A context made from files, and made anew once they have changed.

    Made by `shown` or `believed`.  One thread at a time may call `context`.
    """

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Sequence[Path],
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Read the files; raises what `make` raises: `OSError` or `ValueError`.

        `clock` gives seconds and never goes back; None: the machine's.
        """
        self._make = make
        self._names = ", ".join(map(str, files))
        self._watch = FileWatch(files, clock or machine.monotonic)
        self._context = make()

    def context(self) -> ssl.SSLContext:
        """The TLS context for the next connection; never raises."""
        if self._watch.changed():
            try:
                self._context = self._make()
            except (OSError, ValueError) as error:
                # The files are half written, or wrong: the old context stays in use until they are
                # mended.
                log.warning("TLS files not read again", files=self._names, reason=str(error))
            else:
                log.info("TLS files read again", files=self._names)
        return self._context


def shown(chain: Path, key: Path, clock: Callable[[], float] | None = None) -> RenewedContext:
    """The context of a server: the PEM files of its certificate with its chain, and of its key.

    Raises `OSError` or `ValueError` where they cannot be used: they are missing or not PEM, the key
    belongs to another certificate, or it is encrypted.
    """

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key, _no_password)
        return context

    return RenewedContext(make, (chain, key), clock)


def believed(authorities: Path, clock: Callable[[], float] | None = None) -> RenewedContext:
    """The context of a client: a PEM file of trusted authorities, in place of the machine's.

    Raises `OSError` or `ValueError` where the file holds none.
    """
    return RenewedContext(
        lambda: ssl.create_default_context(cafile=authorities), (authorities,), clock
    )


def _no_password() -> str:
    """Refuse an encrypted key. OpenSSL would ask for its password at the terminal, and wait."""
    raise ValueError("the key is encrypted")
