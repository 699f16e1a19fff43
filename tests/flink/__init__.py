"""The tables of `belfry sql flink` in a Flink, over topics of a real belfry: `make flink`."""
