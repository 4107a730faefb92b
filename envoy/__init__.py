"""Envoy's configuration as it is read by people: YAML templates, filled in by `zurelay.envoy`."""
