"""The profiles in the files of AWS's own tools."""

import os
from configparser import ConfigParser, Error

from assay.errors import StoreError

# keys of profiles that hold no keys
FROM_PROGRAMS = {"sso_start_url", "sso_session", "role_arn", "credential_process"}


def aws_profile(named: str | None) -> tuple[str, dict[str, str]]:
    """The profile's name and all that both files say of it; one that was named must be there."""
    name = named or "default"
    values: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        path = os.path.expanduser(os.environ.get(variable) or file)
        parser = ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(path, encoding="utf-8")
        except (OSError, Error, UnicodeDecodeError):
            fix = "correct it, or set AWS_ACCESS_KEY_ID"
            raise StoreError("this file cannot be read", where=path, fix=fix) from None
        values |= dict(parser[section]) if parser.has_section(section) else {}
    if not values and named:
        raise StoreError(
            f"there is no profile {name!r}", where="AWS_PROFILE", fix="name one of ~/.aws/config"
        )
    return name, values
