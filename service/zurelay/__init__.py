"""zurelay: an AI egress gateway on Envoy."""
