"""Confluent's client is made anew once for each change, however many threads ask."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import pytest

from belfry.host.file_watch import FileWatch
from belfry.registry import renewed_client
from belfry.registry.renewed_client import RenewedClient


class Client:
    """Stands for Confluent's client."""

    made: list[Client] = []  # noqa: RUF012  # emptied by the test

    def __init__(self) -> None:
        self.is_closed = False
        self.made.append(self)

    def close(self) -> None:
        self.is_closed = True

    @classmethod
    def new_client(cls, _: Any) -> Client:
        return cls()


def test_two_threads_do_not_renew_it_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Client.made.clear()
    monkeypatch.setattr(renewed_client, "SchemaRegistryClient", Client)
    both, told = Barrier(2), []

    def changed(_: FileWatch) -> bool:
        # Where two threads look at a time, both are told of the change.
        with suppress(BrokenBarrierError):
            both.wait(0.3)
            return True
        told.append(True)
        return len(told) == 1

    monkeypatch.setattr(FileWatch, "changed", changed)
    files = {"ssl.ca.location": str(tmp_path / "ca.pem")}
    registry = RenewedClient("https://127.0.0.1:1", files, lambda: 0.0)
    threads = [Thread(target=registry.client) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Client.made) == 2
    assert not any(each.is_closed for each in Client.made)
