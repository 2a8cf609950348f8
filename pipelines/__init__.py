"""One command each. Logging is set up before anything else: Beam, when imported first, would do it its own way."""

from runners.ending import watch

watch()

from runners.logs import start_logging  # noqa: E402  (a Ctrl-C during imports is named from here on)

start_logging()
