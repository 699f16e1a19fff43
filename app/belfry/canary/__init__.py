"""The canary: belfry schedules events to itself and tells how many came out, and how late."""
