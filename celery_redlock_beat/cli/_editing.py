"""A document in the operator's editor, again until it can be taken; it stores none itself."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import click

from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Taken = TypeVar("Taken")
HEAD = "# {}: save and leave to store it, or leave without saving to change nothing.\n"


def edited(name: str, document: Mapping[str, Any], take: Callable[[Any], Taken]) -> Taken | None:
    """Have a document changed until ``take`` takes it; return its answer, ``None`` for no change.

    It is YAML where PyYAML is installed, and else JSON. What is wrong with it is shown, and the
    editor opens again with what was typed.

    Raises:
        click.Abort: It was not good, and was given up.

    """
    before = text = _written(name, document)
    while True:
        changed = click.edit(text, extension=".yaml" if _has_yaml() else ".json")
        if changed is None or changed == before:
            return None
        try:
            return take(_read(changed))
        except ConfigurationError as problem:
            click.echo(f"Error: {problem}", err=True)
        click.confirm("Edit it again?", default=True, abort=True, err=True)
        text = changed


def _has_yaml() -> bool:
    return find_spec("yaml") is not None


def _written(name: str, document: Mapping[str, Any]) -> str:
    if not _has_yaml():
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    told: str = _module("yaml_text").written(dict(document))
    return HEAD.format(repr(name)) + told


def _read(text: str) -> Any:
    return _module("yaml_text" if _has_yaml() else "json_text").parsed(text)


def _module(name: str) -> Any:
    return import_module(f"celery_redlock_beat.documents.{name}")  # one of them needs an extra
