"""librdkafka's security properties, as the group's client (aiokafka) wants them."""

from __future__ import annotations

import ssl
from typing import Any


def group_client_security(properties: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of an aiokafka client that equal these librdkafka properties."""
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    arguments: dict[str, Any] = {"security_protocol": protocol}
    if "SSL" in protocol:
        arguments["ssl_context"] = _ssl_context(properties)
    if "SASL" in protocol:
        mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "PLAIN"))
        arguments["sasl_mechanism"] = str(mechanism).upper()
        arguments["sasl_plain_username"] = properties.get("sasl.username")
        arguments["sasl_plain_password"] = properties.get("sasl.password")
    return arguments


def _ssl_context(properties: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=properties.get("ssl.ca.location"))
    certificate = properties.get("ssl.certificate.location")
    if certificate:
        context.load_cert_chain(
            certificate, properties.get("ssl.key.location"), properties.get("ssl.key.password")
        )
    if str(properties.get("ssl.endpoint.identification.algorithm", "https")) == "none":
        context.check_hostname = False
    return context
