"""`seer-otel doctor`: what would happen under the settings of this environment, line by line."""
