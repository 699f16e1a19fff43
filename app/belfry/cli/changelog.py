"""What commands that read the changelog believe there: what workers with these settings believe."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belfry.cli.failures import CommandError

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.store.signatures import Judge


def judges(session: Session) -> Callable[[int], Judge]:
    """What tells rows from strangers' records, by partition.

    Raises `CommandError` where rows are signed with a secret that the settings do not hold.
    """
    from confluent_kafka import TopicCollection

    from belfry.kafka.changelog_trust import ChangelogTrust, NotTrusted
    from belfry.store.signatures import Judge

    settings = session.settings
    if settings.http_worker_secret is None:
        return lambda _partition: Judge()
    _, admin = session.admin()
    topic = settings.topic("changelog")
    described = admin.describe_topics(TopicCollection([topic]))[topic].result()
    trust = ChangelogTrust(settings, admin)

    def judge(partition: int) -> Judge:
        try:
            mark = trust.known(partition)
        except NotTrusted as error:
            raise CommandError(str(error)) from None
        return trust.judge(partition, str(described.topic_id), mark)

    return judge
