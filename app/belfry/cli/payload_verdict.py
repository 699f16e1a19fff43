"""The verdict of `belfry payloads readable`, in JSON for programs and in words for people.

    Not shredded: 1 payloads of clinic can be read, of 0 it cannot be told.
      secret file:clinic.keys is not here: file:clinic.keys cannot be read: No such file
              1  belfry.schedules  as it was sent
            204  belfry.changelog  under key 3f2a…, no secret here decrypts it

Payloads do not count as shredded while anybody may have a key, or while the holders are unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from belfry.cli.payload_traces import PayloadTraces
    from belfry.client.key_ring import KeyRing

WORDS: Final = {
    "decrypted": "a secret here decrypts it",
    "as_sent": "as it was sent",
    "encrypted": "no secret here decrypts it",
    "by_client": "encrypted by a client",
    "unknown": "cannot be told",
}
# The answer of workers if none runs.
NO_WORKERS: Final[dict[str, Any]] = {"workers": [], "silent": []}


class Secrets(NamedTuple):
    """The keys that can be made where the command runs, and of which references.

    `missing` says of each other reference why it was not read; a part of it may exist.
    """

    ring: KeyRing | None
    readable: dict[str, tuple[str, ...]]
    missing: dict[str, str]
    there: frozenset[str] = frozenset()


def told_of(
    tenant: str, secrets: Secrets, traces: PayloadTraces, workers: dict[str, Any] | None
) -> dict[str, Any]:
    from belfry.cli.payload_traces import READABLE, Left

    readable, unknown = traces.count(*READABLE), traces.count(Left.UNKNOWN)
    asked = workers or NO_WORKERS
    having = [each for each in asked["workers"] if each["in_use"] or each["readable"]]
    # Ciphertext alone proves nothing: the secret may lie where this command has not looked.
    unnamed = bool(traces.count(Left.ENCRYPTED)) and not (secrets.readable or secrets.missing)
    held = bool(secrets.readable or secrets.there or having or asked["silent"])
    return {
        "tenant": tenant,
        "shredded": not (readable or unknown or unnamed or held or workers is None),
        "readable": readable,
        "unknown": unknown,
        "secret_unnamed": unnamed,
        "secrets": [
            *(_secret(each, ids, there=True) for each, ids in secrets.readable.items()),
            *(
                _secret(each, (), why, there=each in secrets.there)
                for each, why in secrets.missing.items()
            ),
        ],
        "payloads": [
            {**trace._asdict(), "payloads": count, "readable": trace.left in READABLE}
            for trace, count in sorted(traces.found.items())
        ],
        "store_read": traces.store_read,
        "workers": None if workers is None else asked["workers"],
        "silent": asked["silent"],
    }


def _secret(
    reference: str, ids: tuple[str, ...], why: str | None = None, *, there: bool
) -> dict[str, Any]:
    return {"reference": reference, "there": there, "key_ids": list(ids), "problem": why}


def text_of(told: dict[str, Any]) -> str:
    """The same for people."""
    secrets = [f"  secret {each['reference']} {_state(each)}" for each in told["secrets"]]
    lines = [_verdict(told), *secrets]
    if told["secret_unnamed"]:
        lines.append("  Which secret encrypted them is not known: name it with --key-ref.")
    for each in told["payloads"]:
        key = f"under key {each['key']}, " if each["key"] else ""
        lines.append(f"  {each['payloads']:>9,}  {each['where']}  {key}{WORDS[each['left']]}")
    if not told["store_read"]:
        lines.append(
            "  No payload store is set here (BELFRY_PAYLOAD_STORE), so none was looked at."
        )
    if told["workers"] is None:
        lines.append(
            "  Workers were not asked which keys they have: --http-url asks all of them, and"
            " --no-workers says that none runs any more."
        )
    for worker in told["workers"] or ():
        if worker["in_use"] or worker["readable"]:
            of = ", ".join(each["reference"] for each in worker["readable"]) or "its policy"
            lines.append(f"  worker {worker['worker_id']} still has keys of {of}")
    lines += [f"  worker {each} did not answer" for each in told["silent"]]
    return "\n".join(lines)


def _state(secret: dict[str, Any]) -> str:
    if not secret["there"]:
        return f"is not here: {secret['problem']}"
    if secret["key_ids"]:
        return f"can be read here (keys {', '.join(secret['key_ids'])}): destroy it"
    return f"is here, and is no good secret: destroy it. {secret['problem']}"


def _verdict(told: dict[str, Any]) -> str:
    tenant = told["tenant"]
    if told["shredded"]:
        return f"Nothing of {tenant} can be read: no payload, and no key."
    if not (told["readable"] or told["unknown"]):
        return (
            f"Not shredded, as far as is known: no payload of {tenant} can be read here, but see:"
        )
    return (
        f"Not shredded: {told['readable']:,} payloads of {tenant} can be read, of"
        f" {told['unknown']:,} it cannot be told."
    )
