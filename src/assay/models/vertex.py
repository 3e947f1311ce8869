"""Gemini on Google Cloud (Vertex AI): the same API as `gemini` at a project's own address, with its access tokens."""

from pathlib import Path
from typing import Any

from assay.models._google_token import DEFAULT_FILE, AccessTokens, read_credentials
from assay.models.gemini import GeminiModel
from assay.models.openai import Hosted, base_url
from assay.sdk import Model, UserError, model

_FIX = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_OAUTH_ACCESS_TOKEN"


@model(params=Hosted)
def vertex(
    name: str,
    *,
    project: str | None = None,
    location: str = "global",
    endpoint: str | None = None,
    credentials: str | None = None,
    **settings: Any,
) -> Model:
    """A Gemini model of a project; `api_key` is an access token, `credentials` a file that tokens are fetched with."""
    where, hosted, tokens = f"model {name!r}", Hosted(**settings), None
    if not (hosted.api_key or "").strip():
        file = credentials or (DEFAULT_FILE if Path(DEFAULT_FILE).expanduser().is_file() else None)
        if file is None:
            raise UserError(
                "Google Cloud needs credentials, and there are none", where=where, fix=_FIX
            )
        found = read_credentials(file, where)
        tokens, project = AccessTokens(found), project or found.project_id or found.quota_project_id
    if not project:
        fix = "set GOOGLE_CLOUD_PROJECT, or write `project:`"
        raise UserError(
            "Vertex needs the project, and GOOGLE_CLOUD_PROJECT is not set", where=where, fix=fix
        )
    region = "" if location == "global" else f"{location}-"
    base = base_url(endpoint or f"https://{region}aiplatform.googleapis.com/v1", where=where)
    models = f"{base}/projects/{project}/locations/{location}/publishers/google/models"
    made = VertexModel(name, hosted, models, type="vertex")
    made.tokens = tokens
    made.listing = f"{base}beta1/publishers/google/models?pageSize=1000"  # not in /v1
    return made


class VertexModel(GeminiModel):
    """Its token belongs to the request: it ends within the hour."""

    key_fix = _FIX
    names_key = False
    tokens: AccessTokens | None
    _last = ""

    def with_key(self) -> dict[str, str]:
        bearer = {"authorization": f"Bearer {self._key}"} if self._key else {}
        return {**self._headers, **bearer}

    async def own_headers(self, method: str, url: str, body: bytes) -> dict[str, str] | None:
        if self.tokens is None:
            return None
        token = await self.tokens.token()
        if token != self._last:
            self._last = token
            secrets = {**self.tokens.secrets(), "authorization": token}
            self.protect(self.base, {**self._headers, **secrets})
        return {"authorization": f"Bearer {token}"}

    async def close(self) -> None:
        await super().close()
        if self.tokens is not None:
            await self.tokens.close()
