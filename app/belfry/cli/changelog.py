"""Which rows of the changelog a command believes: those that workers with these settings believe.

Rows of the changelog may be signed, so that somebody who may write to the topic cannot make belfry
fire. A command that reads rows, such as `belfry backup` or `verify`, has to skip what a worker
would skip, or it would tell of schedules that do not exist. Without a secret in the settings
nothing can be judged, and all rows count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belfry.cli import log_lines
from belfry.cli.failures import CommandError

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.store.row_judge import Judge


def judges(session: Session) -> Callable[[int], Judge]:
    """The judges that tell workers' rows from strangers' records, by partition.

    Call the result with the number of a partition, once for each: it asks Kafka for what the owner
    of the partition has said about its signatures. Raises `CommandError` where rows are signed with
    a secret that the settings do not hold.
    """
    from confluent_kafka import TopicCollection

    from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
    from belfry.kafka.signature_marks import marks_of
    from belfry.store.row_judge import Judge

    log_lines.to_stderr()
    settings = session.settings
    if settings.http_worker_secret is None:
        return lambda _partition: Judge()
    _, admin = session.admin()
    topic = settings.topic("changelog")
    described = admin.describe_topics(TopicCollection([topic]))[topic].result()
    trust = ChangelogTrust(settings, marks_of(settings))

    def judge(partition: int) -> Judge:
        """The judge of one partition, after one look at its owner's mark."""
        try:
            mark = trust.known(partition)
        except NotTrusted as error:
            raise CommandError(str(error)) from None
        return trust.judge(partition, str(described.topic_id), mark)

    return judge
