"""Starts one Python worker for an engine that speaks Beam's container contract, without a container.

A worker pool runs it as ``python -m runners.worker_boot --id=... --control_endpoint=...``. It asks the engine for
the job's options and becomes the worker, so that log levels and options reach it as they would in a container.
Whatever a library prints to stdout goes to stderr: nobody reads the pipe that a pool may have put there, and a full
pipe would hang the job.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from runners.logs import start_logging

ASK_SECONDS = 60

# Beam's worker reads its name from the environment when it is imported, so nothing here imports Beam before.


def main(argv: Sequence[str]) -> None:
    """Run one worker until its engine ends it."""
    parser = argparse.ArgumentParser(prog="python -m runners.worker_boot", allow_abbrev=False)
    for name in ("id", "control_endpoint", "provision_endpoint"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("logging_endpoint", "artifact_endpoint"):
        parser.add_argument(f"--{name}", default="")
    args = parser.parse_args(list(argv))
    os.dup2(sys.stderr.fileno(), 1)
    os.environ["WORKER_ID"] = args.id
    start_logging()
    logging.getLogger("runners.worker_boot").info("worker %s: process %d", args.id, os.getpid())
    os.environ.update(worker_environment(args))
    from apache_beam.runners.worker import sdk_worker_main

    sdk_worker_main.main([])


def worker_environment(args: argparse.Namespace) -> dict[str, str]:
    """Return what Beam's worker reads from its environment. Asks the engine for the job's options.

    Raises grpc.RpcError when the engine does not answer.
    """
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2 as provision
    from apache_beam.portability.api import beam_provision_api_pb2_grpc as provision_grpc
    from google.protobuf import json_format

    with grpc.insecure_channel(args.provision_endpoint) as channel:
        service = provision_grpc.ProvisionServiceStub(channel)
        reply = service.GetProvisionInfo(
            provision.GetProvisionInfoRequest(), timeout=ASK_SECONDS, metadata=(("worker_id", args.id),)
        )
    info = reply.info
    services = {
        "CONTROL": args.control_endpoint or info.control_endpoint.url,
        "LOGGING": args.logging_endpoint or info.logging_endpoint.url,
        "STATUS": info.status_endpoint.url,
    }
    return {
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        **{f"{name}_API_SERVICE_DESCRIPTOR": f'url: "{url}"' for name, url in services.items() if url},
    }


if __name__ == "__main__":
    main(sys.argv[1:])
