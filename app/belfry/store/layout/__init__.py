"""The layout of state at rest: the only modules that know an offset, a key letter or a row letter.

    keys       where a row lies: local keys, and the keys of the changelog
    pending    the record of a schedule that waits: head, definition, and what changes between fires
    records    all other records: locations, markers, verdicts, awaited fires, manifests, state

Everything else in the house works with names: a `Pending` and its fields, a `Location`, a `Marker`.
So a change of the format has one place, and `store/README.md` specifies it to the byte.

Rules for all layouts: numbers are big-endian, so that bytes sort as numbers do.  Instants are epoch
milliseconds in UTC.  A record begins with the format and the letter of its row.
"""
