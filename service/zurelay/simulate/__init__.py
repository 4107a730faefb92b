"""The simulated provider: both formats, plausible answers, and every fault on request (docs/simulate.md)."""
