"""`python -m bench.guard`: fails where a request or a chunk costs the sidecar more than it did, on any busy machine."""
