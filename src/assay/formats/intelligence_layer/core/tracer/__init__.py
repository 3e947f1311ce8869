"""Tracers: to memory, to a file, to several at once, to OpenTelemetry."""
