"""Retrieval evaluation for applications traced with OpenTelemetry and OpenInference."""
