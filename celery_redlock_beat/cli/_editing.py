"""A document in the operator's editor, again until it can be taken; it stores none itself."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import click

from celery_redlock_beat.cli._draft import drafted
from celery_redlock_beat.cli._said import hinted
from celery_redlock_beat.documents.files import dump
from celery_redlock_beat.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from celery_redlock_beat.cli._draft import Draft

Taken = TypeVar("Taken")
HEAD = "# {}: save and leave to store it, or leave without saving to change nothing.\n"


def edited(name: str, document: Mapping[str, Any], take: Callable[[Any], Taken]) -> Taken | None:
    """Have a document changed until ``take`` takes it; return its answer, ``None`` for no change.

    It is YAML where PyYAML is installed, and else JSON. What is wrong with it is shown, and the
    editor opens again with what was typed. What was typed and not taken is kept in a file.

    Raises:
        click.Abort: It was not good, and was given up.
        click.ClickException: The editor failed.

    """
    ending = ".yaml" if _has_yaml() else ".json"
    with drafted(_written(name, document), ending, lambda draft: _way_on(name, draft)) as draft:
        while True:
            typed = draft.edit()
            if not draft.is_changed:
                return None
            try:
                return take(_read(typed))
            except ConfigurationError as problem:
                click.echo(f"Error: {hinted(str(problem))}", err=True)
            click.confirm("Edit it again?", default=True, abort=True, err=True)


def _way_on(name: str, draft: Draft) -> str:
    """Make the draft a file for import, if it can be read; return what to do with it."""
    try:
        document = dict(_read(draft.text))
        text = dump({name: document}, "yaml" if _has_yaml() else "json")
    except (ConfigurationError, TypeError, ValueError):
        return "edit the entry again, and take it from there"
    draft.path.write_text(text, encoding="utf-8")
    return "celery -A proj redlock import FILE --replace stores it, whatever is stored by then"


def _has_yaml() -> bool:
    return find_spec("yaml") is not None


def _written(name: str, document: Mapping[str, Any]) -> str:
    if not _has_yaml():
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    told: str = _module("yaml_text").written(dict(document))
    return HEAD.format(repr(name)) + told


def _read(text: bytes) -> Any:
    return _module("yaml_text" if _has_yaml() else "json_text").parsed(text)


def _module(name: str) -> Any:
    return import_module(f"celery_redlock_beat.documents.{name}")  # one of them needs an extra
