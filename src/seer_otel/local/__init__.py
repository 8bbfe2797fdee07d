"""The embedded backend: it takes events as Seer does, keeps them in a folder and shows them. Extra: `local`."""

DEFAULT_FOLDER = "./.seer-otel"
KEY_VARIABLE = "SEER_OTEL_SERVE_KEY"
