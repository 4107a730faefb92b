"""`python -m bench`: what the gateway costs, measured beside Envoy alone and its peers in one run on one machine."""
