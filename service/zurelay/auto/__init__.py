"""Zurelay Auto: how hard a request is, from its content alone (SPEC 6). No model call, no IO."""
