"""YAML as the same data as JSON, and back; it knows no entry, and needs PyYAML.

PyYAML reads YAML 1.1, where ``on`` is true, ``010`` is eight, ``12:30`` is 750, and a date is no
text. Here a plain word is null, true, false or a number only as YAML 1.2 spells what JSON has, and
else a text. What is written is quoted where either reading would see more in it than a text.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from celery_redlock_beat.documents.json_text import Object, decoded
from celery_redlock_beat.errors import ConfigurationError

_TAG = "tag:yaml.org,2002:"
_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_FLOAT = re.compile(rf"{_INTEGER}(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)\Z")
_WORDS: list[tuple[str, re.Pattern[str], list[str]]] = [
    ("null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")),
    ("int", re.compile(rf"{_INTEGER}\Z"), list("-0123456789")),
    ("float", _FLOAT, list("-0123456789")),
    ("merge", re.compile(r"<<\Z"), ["<"]),
]
_LINE_ENDS = set("\r\x85\u2028\u2029")
_KINDS = ("null", "bool", "int", "float", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> Any:
        """Note which keys are there twice, as long as no merge has added others."""
        node: Any = super().compose_mapping_node(anchor)
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        node.repeated = tuple({each for each in keys if keys.count(each) > 1} - {"<<"})
        return node

    def object_of(self, node: Any) -> Any:
        """Make an object, empty at first: an alias within may be of itself."""
        made = Object()
        yield made
        made.update(self.construct_mapping(node))
        made.repeated = node.repeated


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        """Write each thing where it is: there are only values."""
        return True

    def text_of(self, data: str) -> Any:
        """Quote what YAML takes for the end of a line, and JSON does not."""
        style = '"' if _LINE_ENDS.intersection(data) else None
        return self.represent_scalar(f"{_TAG}str", data, style=style)


_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    tag: maker
    for tag, maker in yaml.SafeLoader.yaml_constructors.items()
    if tag in {None, *(_TAG + each for each in _KINDS)}
}
for _word, _pattern, _first in _WORDS:
    _Loader.add_implicit_resolver(_TAG + _word, _pattern, _first)
_Loader.add_constructor(_TAG + "map", _Loader.object_of)
_Dumper.add_representer(str, _Dumper.text_of)
_Dumper.add_multi_representer(dict, _Dumper.represent_dict)
# A number in YAML 1.2 that was none in 1.1: without a point.
_Dumper.add_implicit_resolver(_TAG + "float", _FLOAT, list("-0123456789"))


def parsed(text: str | bytes) -> Any:
    """Return the data of a YAML text; its objects are ``Object``.

    Raises:
        ConfigurationError: It is not YAML, not one document, or has what JSON has not; tells where.

    """
    try:
        return yaml.load(decoded(text), Loader=_Loader)  # noqa: S506 - it is a safe one
    except RecursionError:
        raise ConfigurationError("it is nested too deeply; make it flatter") from None
    except (yaml.YAMLError, ValueError, KeyError, IndexError) as error:
        told = " ".join(str(error).split())
        raise ConfigurationError(f"it is no YAML that JSON could tell: {told}") from None


def written(data: Any) -> str:
    """Return data as YAML in blocks, its keys in their order."""
    return yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)
