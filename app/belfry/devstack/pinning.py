"""Prints the list of pinned artifacts: ``python -m belfry.devstack.pinning > artifacts.lock``.

A developer runs it to raise a version; it never runs at run time.  Maven's dependencies are
resolved here once, and users download a fixed list.  That saves some 15 s at the first start, and
makes the list reviewable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from jgo.maven import Artifact, Dependency, MavenContext

KAFKA = ("org.apache.kafka", "kafka_2.13", "4.3.0")
# Kafka logs through slf4j 1.7; without a binding it is silent.  Added by itself: resolved together
# with Kafka, log4j's bill of materials would change the versions of Kafka's own libraries.
LOG_BINDING = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
# Connect comes without the libraries that the binding needs.
LOG_CORE = ("org.apache.logging.log4j", "log4j-core", "2.25.4")
LOG_API = ("org.apache.logging.log4j", "log4j-api", "2.25.4")
REGISTRY = ("io.apicurio", "apicurio-registry-app", "3.3.3")
# Kafka Connect, and the plug-ins that the examples use.  Debezium's come as one archive each.
CONNECT = ("org.apache.kafka", "connect-runtime", "4.3.0")
CONNECT_FILE = ("org.apache.kafka", "connect-file", "4.3.0")
# The newest version whose parents can be had; it speaks the registry's second API.
CONNECT_AVRO = ("io.apicurio", "apicurio-registry-utils-converter", "2.6.13.Final")
# Libraries that a Connect worker gives to its plug-ins, so they need not bring them.
GIVEN = frozenset(
    {"org.apache.kafka", "org.lz4", "org.slf4j", "org.xerial.snappy", "com.github.luben"}
)
CONNECT_DEBEZIUM = {
    "connect-jdbc": ("io.debezium", "debezium-connector-jdbc", "3.6.0.Final"),
    "connect-postgres": ("io.debezium", "debezium-connector-postgres", "3.6.0.Final"),
}

HEADER = """\
# What the embedded stack runs, to the byte: bundle, sha256, size, Maven coordinates.
# `python -m belfry.devstack.pinning` prints this list anew for the versions named there."""


Coordinates = tuple[str, str, str]


def with_needs(context: MavenContext, coordinates: Coordinates) -> Iterator[Artifact]:
    """A jar with all that it needs to run."""
    given, needed = context.resolver.resolve([Dependency(alone(context, coordinates))])
    yield from (dependency.artifact for dependency in (*given, *needed))


def alone(
    context: MavenContext, coordinates: Coordinates, classifier: str = "", packaging: str = "jar"
) -> Artifact:
    """One file of a component."""
    group, name, version = coordinates
    component = context.project(group, name).at_version(version)
    return component.artifact(classifier=classifier, packaging=packaging)


def pin(bundle: str, artifact: Artifact, kind: str = "") -> str:
    """One line of the list."""
    content = artifact.resolve().read_bytes()
    coordinates = f"{artifact.groupId}:{artifact.artifactId}:{artifact.version}{kind}"
    return f"{bundle} {hashlib.sha256(content).hexdigest()} {len(content)} {coordinates}"


def jars(bundle: str, artifacts: Iterable[Artifact]) -> list[str]:
    """The lines of a bundle of jars, in the order of their coordinates."""
    return sorted((pin(bundle, jar) for jar in artifacts), key=lambda line: line.split()[-1])


def main() -> None:
    """Print the list."""
    context = MavenContext()
    log = alone(context, LOG_BINDING)
    lines = jars("kafka", [*with_needs(context, KAFKA), log])
    lines.append(pin("registry", alone(context, REGISTRY, "all", "tar.gz"), ":all:tar.gz"))
    logs = [log, alone(context, LOG_CORE), alone(context, LOG_API)]
    lines += jars("connect", [*with_needs(context, CONNECT), *logs])
    lines += jars("connect-file", [alone(context, CONNECT_FILE)])
    avro = with_needs(context, CONNECT_AVRO)
    lines += jars("connect-avro", (jar for jar in avro if jar.groupId not in GIVEN))
    for bundle, coordinates in CONNECT_DEBEZIUM.items():
        plugin = alone(context, coordinates, "plugin", "tar.gz")
        lines.append(pin(bundle, plugin, ":plugin:tar.gz"))
    print(HEADER, *lines, sep="\n")


if __name__ == "__main__":
    main()
