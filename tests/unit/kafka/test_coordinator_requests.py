"""The bytes of FindCoordinator v4, as https://kafka.apache.org/protocol has them."""

from __future__ import annotations

from io import BytesIO

from belfry.kafka.coordinator_requests import FIND_COORDINATOR, FindCoordinators, coordinators_by

# Lengths are one more than they are, in a compact form; a string that is null has 0.
QUESTION = b"\x01" + b"\x03" + b"\x05id-1" + b"\x05id-2" + b"\x00"
ANSWER = (
    b"\x00\x00\x00\x00" + b"\x03"
    + b"\x05id-1" + b"\x00\x00\x00\x07" + b"\x05host" + b"\x00\x00\x23\x84"
    + b"\x00\x00" + b"\x00" + b"\x00"
    + b"\x05id-2" + b"\xff\xff\xff\xff" + b"\x01" + b"\xff\xff\xff\xff"
    + b"\x00\x0f" + b"\x04why" + b"\x00"
    + b"\x00"
)  # fmt: skip


class Client:
    """A client whose broker answers these bytes."""

    async def send(self, node: int, request: FindCoordinators) -> object:
        """The answer."""
        made = request.prepare({FIND_COORDINATOR: (0, 6)})
        assert (node, made.API_VERSION, made.encode()) == (3, 4, QUESTION)
        data = BytesIO(ANSWER)
        found = made.RESPONSE_TYPE.decode(data)
        assert data.read() == b""
        return found


async def test_several_ids_are_asked_for_at_once_and_each_has_its_answer() -> None:
    told = await coordinators_by(Client(), 3, ["id-1", "id-2"])
    assert told == {"id-1": (7, 0), "id-2": (-1, 15)}
