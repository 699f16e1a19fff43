"""What a schedule is and when it is next due: instants, triggers, identities, verdicts.

Pure: time comes in as an argument, results go out as values.
"""
