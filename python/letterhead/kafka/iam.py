"""Authenticate to Amazon MSK with IAM: :class:`IamIdentity` signs requests with the credentials that botocore finds.

The mechanism ``AWS_MSK_IAM`` sends a signed request as JSON. librdkafka lacks it, but MSK also accepts the same request
as a token of ``OAUTHBEARER``. ``tests/kafka/test_iam.py`` compares both with AWS's Java library ``aws-msk-iam-auth``.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from letterhead._names import unknown_name
from letterhead._optional_dependencies import install_hint

__all__ = ["IamIdentity", "IamSettings"]

_SERVICE = "kafka-cluster"
_EXPIRES_SECONDS = 900
_USER_AGENT = "letterhead"
_HOST = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?$")
_FRESH_SECONDS = 60.0
"""Time for which credentials are used before botocore is called again. botocore renews temporary credentials at least
ten minutes before they expire."""

_OPTIONS = {
    "awsProfileName": "profile",
    "awsRoleArn": "role_arn",
    "awsRoleSessionName": "role_session",
    "awsRoleExternalId": "role_external_id",
    "awsRoleAccessKeyId": "role_access_key",
    "awsRoleSecretAccessKey": "role_secret_key",
    "awsRoleSessionToken": "role_session_token",
    "awsStsRegion": "sts_region",
}
_IGNORED_OPTIONS = ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs")


@dataclass(frozen=True, repr=False)
class IamSettings:
    """Source of credentials; by default botocore's chain: environment, profile, container, machine."""

    profile: str | None = None
    role_arn: str | None = None
    role_session: str = "letterhead"
    role_external_id: str | None = None
    role_access_key: str | None = None  # credentials that may assume the role, instead of the chain
    role_secret_key: str | None = None
    role_session_token: str | None = None
    sts_region: str | None = None

    def __repr__(self) -> str:
        return "<settings of authentication with IAM>"

    @classmethod
    def from_jaas(cls, options: Mapping[str, str], name: str) -> IamSettings:
        """Return the settings for options of ``IAMLoginModule``; raise ValueError for an unknown option."""
        for option in options:
            if option not in _OPTIONS and option not in _IGNORED_OPTIONS:
                raise unknown_name(f"option of {name}", option, sorted([*_OPTIONS, *_IGNORED_OPTIONS]))
        return cls(**{_OPTIONS[option]: value for option, value in options.items() if option in _OPTIONS})


class Credentials(NamedTuple):
    """AWS credentials at a point in time."""

    access_key: str
    secret_key: str
    token: str | None

    def __repr__(self) -> str:
        return "<AWS credentials>"


class IamIdentity:
    """Current AWS credentials of a client, shared by threads.

    Parameters
    ----------
    settings : IamSettings
        Source of the credentials.
    servers : str
        Brokers; the AWS region is part of their host names.
    """

    def __init__(self, settings: IamSettings, servers: str) -> None:
        self._settings = settings
        self._hosts = [server.strip().rpartition(":")[0] for server in servers.split(",")]
        self._lock = threading.Lock()
        self._session: Any = None
        self._source: Any = None
        self._credentials: Credentials | None = None
        self._due = 0.0

    def __repr__(self) -> str:
        return "<identity for authentication with IAM>"

    def __getstate__(self) -> dict[str, Any]:
        # Pickling drops the credentials: Spark's executors have their own.
        return {"settings": self._settings, "servers": ",".join(f"{host}:0" for host in self._hosts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def is_due(self) -> bool:
        """Whether credentials must be obtained or renewed before the next authentication, which can take seconds."""
        return time.monotonic() >= self._due

    def current(self, seconds: float = 0.0) -> Credentials:
        """Return the credentials, renewed if they are due. botocore has its own time limits.

        Raises
        ------
        PermissionError
            If there are none, or the role cannot be assumed.
        ImportError
            If botocore is not installed.
        """
        with self._lock:
            if self._credentials is None or self.is_due:
                self._credentials = self._obtain()
                self._due = time.monotonic() + _FRESH_SECONDS
            return self._credentials

    def payload(self, host: str) -> bytes:
        """Return the authentication message of ``AWS_MSK_IAM`` for a broker."""
        signed = sign_request(host, self._region(host), self.current())
        message = {"version": "2020_10_22", "host": host, "user-agent": _USER_AGENT}
        return json.dumps(message | {name.lower(): value for name, value in signed.items()}).encode()

    def oauth_token(self) -> str:
        """Return a token for ``OAUTHBEARER`` that contains a signed request."""
        credentials = self.current()
        region = self._region(self._named_host())
        host = f"kafka.{region}.amazonaws.com"
        query = urlencode(sign_request(host, region, credentials) | {"User-Agent": _USER_AGENT})
        return base64.urlsafe_b64encode(f"https://{host}/?{query}".encode()).decode().rstrip("=")

    def _named_host(self) -> str:
        """Return the first broker whose name contains a region, or an empty string."""
        return next((host for host in self._hosts if _HOST.search(host)), "")

    def _region(self, host: str) -> str:
        match = _HOST.search(host)
        # AWS's SDKs read AWS_REGION; botocore reads AWS_DEFAULT_REGION and the profile.
        region = match[1] if match else os.environ.get("AWS_REGION") or self._session.get_config_variable("region")
        if not region:
            raise ValueError(
                "no AWS region: the names of the brokers have none, so set the environment variable AWS_REGION or "
                "AWS_DEFAULT_REGION, or the region of the profile"
            )
        return str(region)

    def _obtain(self) -> Credentials:
        with install_hint("AWS_MSK_IAM", "letterhead[msk]"):
            import botocore.session
            from botocore.exceptions import BotoCoreError, ClientError
        try:
            if self._session is None:
                self._session = botocore.session.Session(profile=self._settings.profile)
                self._source = self._credential_source()
            frozen = None if self._source is None else self._source.get_frozen_credentials()
            self._region(self._named_host())  # an error here is clearer than one during authentication
        except (BotoCoreError, ClientError) as error:
            raise PermissionError(f"AWS_MSK_IAM got no AWS credentials: {error}") from None
        if frozen is None:
            raise PermissionError(
                "AWS_MSK_IAM found no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or "
                "attach a role to the machine"
            )
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    def _credential_source(self) -> Any:
        from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
        from botocore.credentials import Credentials as Fixed

        settings = self._settings
        own = self._session.get_credentials()
        if settings.role_arn is None:
            return own
        if settings.role_access_key is not None:
            own = Fixed(settings.role_access_key, settings.role_secret_key, settings.role_session_token)
        if own is None:
            return None
        extra = {"RoleSessionName": settings.role_session}
        if settings.role_external_id is not None:
            extra["ExternalId"] = settings.role_external_id
        region = settings.sts_region or self._region(self._named_host())
        fetcher = AssumeRoleCredentialFetcher(
            partial(self._session.create_client, region_name=region), own, settings.role_arn, extra_args=extra
        )
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def sign_request(host: str, region: str, credentials: Credentials) -> dict[str, str]:
    """Return the parameters of a signed request to connect."""
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials as Fixed

    request = AWSRequest("GET", f"https://{host}/", params={"Action": f"{_SERVICE}:Connect"})
    SigV4QueryAuth(Fixed(*credentials), _SERVICE, region, _EXPIRES_SECONDS).add_auth(request)
    return dict(parse_qsl(urlsplit(request.url).query, strict_parsing=True))
