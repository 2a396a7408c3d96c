"""Find the settings of a prefix, however the user spelt them; what one means is not known here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from celery_redlock_beat.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from celery import Celery

NAMESPACE = "celery"
"""What Django's settings begin with, unless the app says otherwise."""


def spelt_in(app: Celery, prefix: str) -> dict[str, tuple[str, Any]]:
    """Return what is set, by what follows the prefix: the name as the user spelt it, and the value.

    Celery knows no foreign settings, so it translates no case or prefix for them, and its versions
    disagree on whether a change or a prefixed name wins; the first of its maps wins here.

    Raises:
        SettingError: One setting has two values.

    """
    app.conf.get(f"{prefix}url")  # the first question makes Celery load the configuration
    found: dict[str, tuple[str, Any]] = {}
    for mapping in app.conf.maps:
        here: dict[str, tuple[str, Any]] = {}
        for name, key in _names(mapping, prefix, app.namespace or NAMESPACE):
            other, value = here.setdefault(name, (key, mapping[key]))
            if other != key and value != mapping[key]:
                raise SettingError(f"{other} and {key} are one setting with two values: keep one")
        found = here | found
    return found


def _names(mapping: Mapping[str, Any], prefix: str, namespace: str) -> Iterator[tuple[str, str]]:
    """Yield each setting of the prefix in one map: what follows it, and its spelling."""
    namespace = namespace.lower().rstrip("_") + "_"
    for key in mapping:
        name = str(key).lower().removeprefix(namespace)
        if name.startswith(prefix):
            yield name.removeprefix(prefix), key
