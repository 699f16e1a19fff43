"""Record bytes to values and back: frames, schemas, requests, fired and lifecycle events, policies.

Pure: bytes come in as arguments and go out as values.  Nothing here talks to a registry; the
adapter in `registry/` hands in the schemas that other writers used.
"""
