"""Runs zurelay as processes: children, the run directory, configurations put in force, status, start and end."""
