"""belfry: a Kafka-native, distributed event scheduler.

A request on ``belfry.schedules`` says *what* to send and *when*; the event comes out on the
tenant's topic at its instant, exactly once, never early.  ``ARCHITECTURE.md`` is the map.
"""

__version__ = "0.1.0"
