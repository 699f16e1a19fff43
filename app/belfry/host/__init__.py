"""The machine that a process runs on: its clock, its memory, its files, and RocksDB on its disk."""
