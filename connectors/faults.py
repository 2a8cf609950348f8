"""What can be wrong with a crawl folder as a whole; each fault knows the exit code of its command."""

from __future__ import annotations


class CrawlFolderError(Exception):
    """This folder cannot be used as asked; the message is one line for the operator."""

    exit_code = 2


class DamagedFile(CrawlFolderError):
    """A file of the crawl does not hold what was written, or is gone; the message names it."""

    exit_code = 1


class LostRace(Exception):
    """Another run or attempt committed first; what it committed stands."""

    exit_code = 3


class Locked(Exception):
    """A live holder has the lease; the message says who."""

    exit_code = 3


class LeaseLost(Exception):
    """Another holder has taken the lease over; whoever thought to hold it must stop asking at once."""

    exit_code = 3
