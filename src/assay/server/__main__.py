"""`python -m assay.server --port 8000 …`: the mock server without the rest of the command line."""

import argparse
import sys

import msgspec

from assay.errors import AssayError
from assay.server.options import Options
from assay.server.process import serve


def main(arguments: list[str] | None = None) -> int:
    """Parse one flag for each option and serve."""
    parser = argparse.ArgumentParser(prog="python -m assay.server", description=__doc__)
    for field in msgspec.structs.fields(Options):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=field.type, default=field.default
        )
    parser.add_argument(
        "--until-stdin-closes", action="store_true", help="end when the parent process is gone"
    )
    parser.add_argument(
        "--share-port", action="store_true", help="let several processes listen on one port"
    )
    flags = vars(parser.parse_args(arguments))
    until_stdin_closes, share_port = flags.pop("until_stdin_closes"), flags.pop("share_port")
    try:
        serve(Options(**flags), until_stdin_closes=until_stdin_closes, share_port=share_port)
    except AssayError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
