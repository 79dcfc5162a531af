"""Settings from options, the environment and a file, with errors that name what is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from regent.files.small_files import read_small
from regent.files.yaml_loading import load_yaml
from regent.model.errors import ConfigurationError
from regent.settings.process import ENVIRONMENT_PREFIX, Settings
from regent_rebalance.secret_urls import masked

_NEEDS: Final = (
    ("zookeeper_tls_ca_file", "zookeeper_tls"),
    ("zookeeper_tls_certificate_file", "zookeeper_tls"),
    ("zookeeper_tls_key_file", "zookeeper_tls_certificate_file"),
    ("zookeeper_sasl_username", "zookeeper_sasl_password_file"),
    ("zookeeper_sasl_password_file", "zookeeper_sasl_username"),
    ("broker_tls_ca_file", "broker_tls"),
    ("broker_tls_certificate_file", "broker_tls"),
    ("broker_tls_key_file", "broker_tls_certificate_file"),
    ("broker_sasl_username", "broker_sasl_password_file"),
    ("broker_sasl_password_file", "broker_sasl_username"),
    ("endpoint_advertised_host", "endpoint_port"),
    ("endpoint_advertised_port", "endpoint_port"),
    ("endpoint_tls_certificate_file", "endpoint_tls"),
    ("endpoint_tls_key_file", "endpoint_tls_certificate_file"),
    ("endpoint_tls_client_ca_file", "endpoint_tls"),
    ("endpoint_sasl_plain_users_file", "endpoint_sasl_mechanisms"),
)
"""Settings that have no effect without another one: without it a connection would silently be
unencrypted or unauthenticated."""

_IDENTITIES: Final = ("zookeeper_sasl_username", "zookeeper_tls_certificate_file")
"""By which ZooKeeper knows who Regent is."""

_GIVEN_MAX: Final = 300
"""Characters of a value that a message repeats."""


def load_settings(options: Mapping[str, Any], *, file: Path | None = None) -> Settings:
    """Settings from options, environment and file.

    Args:
        options: What was given on the command line, by field name.
        file: YAML file with field names as keys.

    Raises:
        ConfigurationError: Names every invalid setting, its value and what is allowed.
    """
    from_file = _read_file(file) if file is not None else {}
    try:
        from_environment = Settings(**options).model_dump(exclude_unset=True)
        settings = Settings(**(from_file | from_environment))
    except ValidationError as error:
        raise _invalid([_describe({**problem}) for problem in error.errors()]) from error
    if not settings.zookeeper:
        raise ConfigurationError(
            "no ZooKeeper given; name the servers of the Kafka cluster with --zookeeper "
            f"HOST:PORT[/chroot] or {ENVIRONMENT_PREFIX}ZOOKEEPER"
        )
    incomplete = [
        f"{name}: needs {needed}, which is not set (given: {str(getattr(settings, name))!r})"
        for name, needed in _NEEDS
        if getattr(settings, name) is not None and not _is_set(getattr(settings, needed))
    ]
    if settings.zookeeper_set_acl and not any(_is_set(getattr(settings, n)) for n in _IDENTITIES):
        incomplete.append(
            f"zookeeper_set_acl: needs {' or '.join(_IDENTITIES)}: ZooKeeper gives rights to those "
            "who have authenticated, and creates nothing with these rights for others"
        )
    if incomplete:
        raise _invalid(incomplete)
    return settings


def _is_set(value: object) -> bool:
    """Whether a setting says something; port 0 does."""
    return value is not None and value is not False and value != ()


def _invalid(problems: Sequence[str]) -> ConfigurationError:
    return ConfigurationError("\n".join(["invalid settings:", *(f"  {p}" for p in problems)]))


def _describe(problem: Mapping[str, Any]) -> str:
    """A problem, given as pydantic's ErrorDetails."""
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        similar = difflib.get_close_matches(name, Settings.model_fields, n=1)
        advice = f"did you mean {similar[0]}?" if similar else "docs/settings.md lists them all"
        return f"{name}: there is no such setting; {advice}"
    given = masked(repr(problem["input"]))
    if len(given) > _GIVEN_MAX:
        given = f"{given[:_GIVEN_MAX]}..."
    return f"{name}: {problem['msg']} (given: {given})"


def _read_file(file: Path) -> dict[str, Any]:
    try:
        content = load_yaml(read_small(file).decode())
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"settings file {file} is not text in UTF-8; it must be YAML: {error}"
        ) from error
    except (OSError, ValueError, yaml.YAMLError) as error:  # ValueError: an impossible date
        raise ConfigurationError(f"settings file {file} cannot be read: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigurationError(f"settings file {file} must be a mapping of names to values")
    settings: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name in settings:
            raise ConfigurationError(f"settings file {file} has {name} twice; keep one of them")
        settings[name] = value
    return settings
