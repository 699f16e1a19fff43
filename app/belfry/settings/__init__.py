"""Settings: values read once at start, from ``BELFRY_*`` variables or a TOML file.

    SharedSettings            every process: Kafka, registry, which belfry it is
    ├── CommandSettings       a command of `belfry`
    └── ServerSettings        HTTP port, data directory, log
        └── DeliverySettings  a dispatcher (`belfry worker --role deliver`)
            └── Settings      a worker, with the settings that all workers agree on

Code that several processes run takes the narrowest of these, so each process sees only what
concerns it.  Every setting has its unit in its name, a bound and a sentence.  `agreement_rules.py`
says whether it is equal on all workers and why, and `names.py` refuses unknown names.
"""

from belfry.settings.cluster import ClusterSettings
from belfry.settings.commands import CommandSettings
from belfry.settings.delivery import DeliverySettings, RoleSettings
from belfry.settings.properties import property_name
from belfry.settings.server import ServerSettings
from belfry.settings.shared import SharedSettings
from belfry.settings.sources import plain
from belfry.settings.worker import WorkerSettings as Settings

__all__ = [
    "ClusterSettings",
    "CommandSettings",
    "DeliverySettings",
    "RoleSettings",
    "ServerSettings",
    "Settings",
    "SharedSettings",
    "plain",
    "property_name",
]
