"""OpenAI's models on Azure: the OpenAI client at a resource's own address, where `model_name` is a deployment."""

import re
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace

from assay.config.environment import FromEnvironment
from assay.models.openai import OpenAIModel, Spoken, base_url
from assay.sdk import JsonMapping, Model, UserError, model

_RENAME = {"max_tokens": "max_completion_tokens"}


@model(params=Spoken)
def azure(
    name: str,
    *,
    endpoint: str | None = None,
    api_version: str | None = None,
    rename: dict[str, str] | None = None,
    **settings: Any,
) -> Model:
    """A deployment; `endpoint` is the resource's address or its name. With `api_version` the older addresses are used,
    which have the deployment in their path."""
    where, spoken = f"model {name!r}", Spoken(**settings)
    if not endpoint:
        fix = "set AZURE_OPENAI_ENDPOINT to https://RESOURCE.openai.azure.com, or write `endpoint:`"
        raise UserError(
            "Azure needs the resource, and AZURE_OPENAI_ENDPOINT is not set", where=where, fix=fix
        )
    address = endpoint if "://" in endpoint else f"https://{endpoint}.openai.azure.com"
    root = re.sub(r"(?<=[^/])/openai(/.*)?$", "", base_url(address, where=where, version=""))
    key = spoken.api_key
    sent = {**({"api-key": key.strip()} if key else {}), **(spoken.headers or {})}
    keyless = replace(spoken, api_key=None, headers=sent)
    made = AzureModel(name, keyless, f"{root}/openai/v1", _RENAME if rename is None else rename)
    made.identity = {**made.identity, "type": "azure"}
    if isinstance(key, FromEnvironment):
        made.key_fix = f"check what {key.reference} holds"
    if api_version:
        made.use_version(root, api_version)
    return made


class AzureModel(OpenAIModel):
    key_fix = "set the variable AZURE_OPENAI_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
    identity: JsonMapping

    def use_version(self, root: str, version: str) -> None:
        """Talk to the addresses that a dated version of the API has."""
        self.query = f"?api-version={quote(version)}"
        self.listing = f"{root}/openai/models{self.query}"
        deployment = (
            f"/deployments/{quote(self.model_name, safe='')}" if self.api != "responses" else ""
        )
        self.connect(f"{root}/openai{deployment}")
