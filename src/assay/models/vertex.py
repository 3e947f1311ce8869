"""Gemini on Google Cloud (Vertex AI): the same API as `gemini` at a project's own address, with its access tokens."""

from pathlib import Path
from typing import Any

from assay.errors import UserError
from assay.interfaces import Model, Request
from assay.models._google_token import DEFAULT_FILE, Tokens, read_credentials
from assay.models._streams import Arrivals
from assay.models._transport import Reply
from assay.models.gemini import GeminiModel
from assay.models.openai import base_url
from assay.registry import model

_FIX = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_OAUTH_ACCESS_TOKEN"


@model
def vertex(
    name: str,
    *,
    model_name: str | None = None,
    project: str | None = None,
    location: str = "global",
    endpoint: str | None = None,
    api_key: str | None = None,
    credentials: str | None = None,
    revision: str | None = None,
    extra_body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Model:
    """A Gemini model of a project; `api_key` is an access token, `credentials` a file that tokens are fetched with."""
    where = f"model {name!r}"
    token, tokens = (api_key or "").strip(), None
    if not token:
        file = credentials or (DEFAULT_FILE if Path(DEFAULT_FILE).expanduser().is_file() else None)
        if file is None:
            raise UserError(
                "Google Cloud needs credentials, and there are none", where=where, fix=_FIX
            )
        found = read_credentials(file, where)
        tokens, project = Tokens(found), project or found.project_id or found.quota_project_id
    if not project:
        fix = "set GOOGLE_CLOUD_PROJECT, or write `project:`"
        raise UserError(
            "Vertex needs the project, and GOOGLE_CLOUD_PROJECT is not set", where=where, fix=fix
        )
    host = (
        "aiplatform.googleapis.com"
        if location == "global"
        else f"{location}-aiplatform.googleapis.com"
    )
    base = base_url(endpoint or f"https://{host}/v1", where=where)
    models = f"{base}/projects/{project}/locations/{location}/publishers/google/models"
    sent = {header.lower(): value for header, value in (headers or {}).items()}
    sent |= {"authorization": f"Bearer {token}"} if token else {}
    made = VertexModel(
        name, model_name or name, models, sent, revision, extra_body or {}, type="vertex"
    )
    made.tokens = tokens
    made.listing = f"{base}beta1/publishers/google/models?pageSize=1000"  # not in /v1
    return made


class VertexModel(GeminiModel):
    """Its token belongs to the request: it ends within the hour."""

    key_fix = _FIX
    tokens: Tokens | None
    _last = ""

    async def _bearer(self) -> dict[str, str] | None:
        if self.tokens is None:
            return None
        token = await self.tokens.token()
        if token != self._last:
            self._last = token
            self.protect(
                self.base, {**self.headers, **self.tokens.secrets(), "authorization": token}
            )
        return {"authorization": f"Bearer {token}"}

    async def _send(self, request: Request, arrivals: Arrivals | None = None) -> Reply:
        headers, body = await self._bearer(), self.body(request)
        return await self._transport.post(
            body, timeout=request.timeout, headers=headers, arrivals=arrivals
        )

    async def list_models(self) -> Reply:
        return await self._transport.get(self.listing, timeout=10, headers=await self._bearer())

    async def close(self) -> None:
        await super().close()
        if self.tokens is not None:
            await self.tokens.close()
