"""A broker that asks who one is, and for rights: TLS, SCRAM and an authorizer.

Anybody may connect to one address without a word, as `ANONYMOUS`, which is how tests look at
topics; at the other one a client shows a certificate of the broker's authority and a password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its own re-exports
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from belfry.devstack import Kafka
from belfry.devstack.kafka import Node
from belfry.devstack.ports import free_ports
from tests.unit.kafka.test_security import Signed, signed

PASSWORD = "hunter2hunter2"
# Who the certificate of `user.p12` says one is.
CERTIFIED: Final = "CN=user"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:admin",
}
# What Kafka's own tool calls the kinds of resources and the operations.
KINDS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
OPERATIONS: Final = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}


@dataclass(frozen=True)
class Guarded:
    """A broker that anybody may ask at one address, and known users by TLS alone at two others.

    `secure` wants a password or a token besides a certificate; to `certified` whoever shows a
    certificate is who it names.
    """

    open: str
    secure: str
    certified: str
    authority: Signed
    home: Path

    @property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.open})

    def properties(self, user: str) -> dict[str, str]:
        """What a user gives to each client: an authority, a certificate and a password."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.pem": self.authority.pem,
            "ssl.keystore.location": str(self.home / "user.p12"),
            "ssl.keystore.password": PASSWORD,
        }

    def certificate_properties(self) -> dict[str, str]:
        """What a client gives that is known as `CERTIFIED`, by its certificate alone."""
        given = self.properties("nobody").items()
        return {
            **{name: each for name, each in given if name.startswith("ssl.")},
            "security.protocol": "SSL",
        }


@contextmanager
def guarded_broker(home: Path, **stricter: str) -> Iterator[Guarded]:
    """A broker with an authorizer; who is not named in a rule may do everything, if not stricter.

    `stricter` are properties of the broker, with underscores for dots.
    """
    authority = signed("authority")
    port, secure, certified, controller = free_ports(4)
    addresses = (f"127.0.0.1:{each}" for each in (port, secure, certified))
    found = Guarded(next(addresses), next(addresses), next(addresses), authority, home)
    own, user = signed("broker", authority), signed("user", authority)
    (home / "broker.pem").write_text(own.key_pem() + own.pem + authority.pem)
    (home / "ca.pem").write_text(authority.pem)
    locked = BestAvailableEncryption(PASSWORD.encode())
    store = serialize_key_and_certificates(b"user", user.key, user.certificate, None, locked)
    (home / "user.p12").write_bytes(store)
    properties = {**AUTHORIZER, **listeners(found, controller)}
    properties |= {name.replace("_", "."): value for name, value in stricter.items()}
    node = Node(controller_port=controller)
    broker = Kafka(home / "kafka", port, node=node, properties=properties)
    broker.start()
    try:
        broker.wait_ready(180)
        yield found
    finally:
        broker.stop()


def listeners(guarded: Guarded, controller: int) -> dict[str, str]:
    """Two listeners that ask who one is beside the one that asks nothing."""
    all_three = (
        f"PLAINTEXT://{guarded.open},SECURE://{guarded.secure},CERTIFIED://{guarded.certified}"
    )
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,CERTIFIED:SSL"
    shown = {
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(guarded.home / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(guarded.home / "ca.pem"),
    }
    asked = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        # It takes tokens that nobody signed: what is tested is that clients bring one.
        "oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer."
        'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
        "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram."
        "ScramLoginModule required;",
        **shown,
    }
    return {
        "listeners": f"{all_three},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": all_three,
        "listener.security.protocol.map": protocols,
        **{f"listener.name.secure.{name}": value for name, value in asked.items()},
        **{f"listener.name.certified.{name}": value for name, value in shown.items()},
    }


def known(guarded: Guarded, *users: str) -> None:
    """Make users that have a password."""
    kind = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    new: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, kind, PASSWORD.encode()) for user in users
    ]
    admin = guarded.admin
    for answer in admin.alter_user_scram_credentials(new).values():
        answer.result(20)


def allow(guarded: Guarded, prefix: str, *users: str) -> None:
    """The rights of workers on all that begins so, by docs/tenants.md; nobody else has any."""
    kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    given = [
        AclBinding(
            kind, prefix, ResourcePatternType.PREFIXED, f"User:{user}", "*",
            AclOperation.ALL, AclPermissionType.ALLOW,
        )
        for kind in kinds for user in users
    ]  # fmt: skip
    admin = guarded.admin
    for answer in admin.create_acls(given).values():
        answer.result(20)


def grant(guarded: Guarded, user: str, topics: dict[str, AclOperation]) -> None:
    """What a tenant may do with these topics, and nothing else."""
    allowed, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
    given = [
        AclBinding(ResourceType.TOPIC, topic, literal, f"User:{user}", "*", each, allowed)
        for topic, operation in topics.items()
        for each in (operation, AclOperation.DESCRIBE)
    ]
    admin = guarded.admin
    for answer in admin.create_acls(given).values():
        answer.result(20)
