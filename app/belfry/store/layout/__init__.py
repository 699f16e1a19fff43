"""The layout of state at rest: the only modules that know an offset, a key letter or a row letter.

    keys           where a row lies: local keys, and the keys of the changelog
    locations      which of these keys the record of a schedule that waits lies under
    pending        the record of a schedule that waits: head, definition, and what the user asked
    pending_bytes  the same record, asked and changed without a decoder
    manifests      what a transaction did, and what a local store says of itself by it
    verdicts       what became of a request that has an id
    records        what all records have in common; markers, and fires that are awaited

Everything else in the house works with names: a `Pending` and its fields, a `Location`, a `Marker`.
So a change of the format has one place, and `store/README.md` specifies it to the byte.

Rules for all layouts: numbers are big-endian, so that bytes sort as numbers do.  Instants are epoch
milliseconds in UTC.  A record begins with the format and the letter of its row.
"""
