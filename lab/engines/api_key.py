"""The key of an endpoint, from the environment variable that the config names. Does not import an HTTP client."""

import os
import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from lab.config.evaluation import EndpointConfig
from lab.errors import ConfigError


def api_key(config: EndpointConfig) -> str:
    """The key; "" if the config names no variable. Raises ConfigError if the variable does not hold a key."""
    key = _held(config.api_key_env)
    if config.api_key_env and not key:
        named = f"the environment variable {config.api_key_env}"
        raise ConfigError(f"engine.api_key_env: {named} should hold a key, but is not set")
    return key


def needed_key(config: EndpointConfig) -> str:
    """Like `api_key`, but a server on this machine, which may need no key, gets "" if the variable is not set."""
    return _held(config.api_key_env) if on_this_machine(config.base_url) else api_key(config)


def _held(variable: str | None) -> str:
    """What the variable holds; "" if it is not set. Raises ConfigError for what cannot be a variable or a key."""
    if variable is None:
        return ""
    if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", variable):  # it may be the key itself, so do not print it
        raise ConfigError("engine.api_key_env should be the name of an environment variable, not a key")
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"engine.api_key_env: {variable} has characters that an HTTP header cannot have")
    return key


def on_this_machine(url: str) -> bool:
    """Whether the host in an address is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host in ("localhost", socket.gethostname().lower()) or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
