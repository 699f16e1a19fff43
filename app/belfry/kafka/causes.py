"""Why a request to Kafka had no answer, as words that can end a sentence.

An error of the client has a code and a text; a time-out of Python has neither, so a message would
end with its colon.
"""

from __future__ import annotations

from confluent_kafka import KafkaException


def cause_of(error: Exception) -> str:
    """The cause in words, never empty."""
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    if isinstance(error, KafkaException):
        return str(error.args[0].str())
    return str(error) or type(error).__name__
