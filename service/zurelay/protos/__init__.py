"""Envoy's messages, as far as zurelay speaks them; generated from the files under proto/ by `make proto`."""
