"""HTTP: health, metrics, the state of the worker, and the web page.

An own server, up from the first second: a worker that recovers for a minute has to say so, and a
framework's web server that starts after recovery cannot.
"""
