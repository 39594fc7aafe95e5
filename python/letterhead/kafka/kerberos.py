"""Settings of authentication by GSSAPI: :class:`KerberosSettings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from letterhead._names import unknown_name

__all__ = ["KerberosSettings"]

_IGNORED_OPTIONS = (
    "debug",
    "doNotPrompt",
    "isInitiator",
    "refreshKrb5Config",
    "renewTGT",
    "storeKey",
    "useTicketCache",
)


@dataclass(frozen=True)
class KerberosSettings:
    """Source of the ticket: a keytab; by default the cache of ``kinit``, or the keytab of ``KRB5_CLIENT_KTNAME``."""

    keytab: str | None = None
    principal: str | None = None  # by default the first one of the keytab
    service: str | None = None

    @classmethod
    def from_jaas(cls, options: Mapping[str, str], name: str) -> KerberosSettings:
        """Return the settings for options of ``Krb5LoginModule``; raise ValueError for an unknown option."""
        known = ("keyTab", "principal", "serviceName", "useKeyTab", *_IGNORED_OPTIONS)
        for option in options:
            if option not in known:
                raise unknown_name(f"option of {name}", option, sorted(known))
        uses_keytab = options.get("useKeyTab", "false").lower() == "true"
        if uses_keytab and "keyTab" not in options:
            raise ValueError(f"{name}: useKeyTab needs keyTab, the path of the file")
        keytab = options["keyTab"].removeprefix("file://").removeprefix("FILE:") if uses_keytab else None
        return cls(keytab, options.get("principal") if uses_keytab else None, options.get("serviceName"))
