"""One command each. Logging is set up before anything else: Beam, when imported first, would do it its own way."""

from runners.logs import start_logging

start_logging()
