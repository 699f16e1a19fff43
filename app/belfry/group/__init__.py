"""The group of workers, carried by Faust: its members, their owned partitions and standbys, and
signs of life.

Faust and aiokafka join the group and keep its session; `balance/` computes metadata and assignments
of members.
"""
