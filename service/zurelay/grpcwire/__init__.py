"""gRPC's server side, twice: our own for Envoy on a Unix socket, grpcio's for whoever connects over TCP.

Methods are written against `calls` and know nothing of either (docs/decisions/0008).
"""
