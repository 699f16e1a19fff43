"""Questions to other workers: holders of partitions, forwarded questions, gathered answers."""
