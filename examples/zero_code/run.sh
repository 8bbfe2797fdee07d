#!/bin/sh
# Starts the application under opentelemetry-instrument, which finds LangChain's instrumentor and seer-otel.
# Without OTEL_TRACES_EXPORTER=none the spans would go to an OTLP collector, too.
set -eu
export SEER_INGESTION_URL="${SEER_INGESTION_URL:-http://127.0.0.1:8790/v1/log}"
export SEER_SAMPLE_RATE=1.0 OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none
exec opentelemetry-instrument python "$(dirname "$0")/app.py"
