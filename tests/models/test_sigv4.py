"""AWS's signature against its published examples, and against botocore where that is installed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from assay.models._sigv4 import Keys, signature_headers

KEYS = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
HOST = "https://example.amazonaws.com"


@pytest.mark.parametrize(
    ("method", "path", "signature"),
    [  # get-vanilla, post-vanilla, get-vanilla-query-order-key-case, get-unreserved
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET",
            "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
    ],
)
def test_the_published_examples(method: str, path: str, signature: str) -> None:
    headers = signature_headers(
        method, HOST + path, b"", KEYS, region="us-east-1", service="service", now=NOW
    )
    assert headers == {
        "x-amz-date": "20150830T123600Z",
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={signature}",
    }


@pytest.mark.parametrize(
    "path", ["/model/a.b-v1%3A0/converse", "/model/arn%3Aaws%3Ax%2Fy/converse", "/f?b=2&a=%20x"]
)
@pytest.mark.parametrize("token", [None, "session/token+=="])
def test_as_botocore_signs(path: str, token: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    auth: Any = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.setattr(
        auth,
        "get_current_datetime",
        lambda remove_tzinfo=True: NOW.replace(tzinfo=None),
        raising=False,
    )
    request = AWSRequest("POST", HOST + path, data=b'{"messages": []}')
    auth.SigV4Auth(Credentials(KEYS[0], KEYS[1], token), "bedrock", "eu-west-1").add_auth(request)
    theirs = {name.lower(): value for name, value in request.headers.items()}
    keys = KEYS._replace(session_token=token)
    ours = signature_headers(
        "POST",
        HOST + path,
        b'{"messages": []}',
        keys,
        region="eu-west-1",
        service="bedrock",
        now=NOW,
    )
    assert ours == {name: theirs[name] for name in ours}
