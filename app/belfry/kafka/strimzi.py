"""Topics and rights for the chart: files made from the code, so that both agree.

``python -m belfry.kafka.strimzi FOLDER`` writes them.  Names stand as expressions of the chart's
templates, which puts its values in.

    topics.json            configurations by name, without the prefix
    topics-canary.json     the same of the topics that exist if belfry measures itself
    topics-metering.json   the same of the topic that exists if usage is counted
    rights.json            `spec.authorization.acls` of the workers' KafkaUser
    rights-creating.json   the same if workers create their topics
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from belfry.kafka.rights import MAIN_JOB, Options, strimzi, worker_rights
from belfry.kafka.topics import wanted_topics
from belfry.settings import SharedSettings
from belfry.settings.checks import HOUR_MS

# Expressions of Helm's templates, in place of a prefix and a group.
_PREFIX: Final = "{{ .Values.cluster.topicPrefix }}"
_APP_ID: Final = "{{ .Values.cluster.appId }}"
# The chart decides the number of replicas, and so the number that has to be in sync.
_OF_THE_CLUSTER: Final = "min.insync.replicas"


def chart_files(settings: SharedSettings) -> dict[str, str]:
    """Texts of the files, by name."""
    topics = _topics(settings)

    def added(setting: str, value: int) -> dict[str, dict[str, str]]:
        wanted = _topics(settings.model_copy(update={setting: value}))
        return {name: config for name, config in wanted.items() if name not in topics}

    return {
        "topics.json": _text(topics),
        "topics-canary.json": _text(added("canary_interval_ms", 10_000)),
        "topics-metering.json": _text(added("metering_interval_ms", HOUR_MS)),
        "rights.json": _text(_rights(MAIN_JOB)),
        "rights-creating.json": _text(_rights(Options(creates_topics=True))),
    }


def _topics(settings: SharedSettings) -> dict[str, dict[str, str]]:
    prefix = settings.cluster.topic_prefix
    return {
        spec.name.removeprefix(prefix): {
            name: value for name, value in spec.config.items() if name != _OF_THE_CLUSTER
        }
        for spec in wanted_topics(settings, 1)
    }


def _rights(options: Options) -> object:
    return strimzi(worker_rights(_PREFIX, _APP_ID, options))


def _text(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


if __name__ == "__main__":
    for name, text in chart_files(SharedSettings()).items():
        Path(sys.argv[1], name).write_text(text, "utf-8")
