"""Which port is taken next."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from belfry.devstack import DevStackError, free_port, free_ports
from belfry.devstack.ports import ANY_PORT, LOOPBACK, can_bind
from belfry.devstack.stack import moved_port


@pytest.fixture
def taken() -> Iterator[int]:
    """A port somebody listens on."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, free_port()))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_free_port_is_taken_as_wished() -> None:
    wished = free_port()
    assert free_port(wished) == wished


def test_a_taken_port_moves_on(taken: int) -> None:
    assert not can_bind(taken)
    assert taken < free_port(taken) < taken + 200


def test_a_port_of_somebody_who_is_about_to_bind_is_avoided() -> None:
    wished = free_port()
    assert free_port(wished, avoid=[wished]) > wished


def test_ports_of_listeners_that_open_together_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([20_001, 20_001, 20_002, 20_003, 20_001, 20_004])
    monkeypatch.setattr("belfry.devstack.ports.secrets.choice", lambda ports: next(drawn))
    monkeypatch.setattr("belfry.devstack.ports.can_bind", lambda port: True)
    assert free_ports(3, avoid=[20_002]) == [20_001, 20_003, 20_004]


def test_zero_is_any_port() -> None:
    assert free_port(0) in ANY_PORT


def test_no_port_left_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belfry.devstack.ports.can_bind", lambda port: False)
    with pytest.raises(DevStackError, match="No free port among the 200 from 9092 on"):
        free_port(9092)


def test_a_move_is_said(taken: int) -> None:
    said: list[str] = []
    port = moved_port("Kafka", taken, said.append)
    assert said == [f"Port {taken} is taken. Kafka takes {port}."]


def test_no_move_is_not_said() -> None:
    said: list[str] = []
    moved_port("Kafka", free_port(), said.append)
    moved_port("Kafka", 0, said.append)
    assert said == []
