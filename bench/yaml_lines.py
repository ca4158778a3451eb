"""YAML whose faults can be named by their line: parses a document, refuses a key given twice, finds a field's line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml


class YamlFault(ValueError):
    """What is wrong with a YAML text, and in which line (from 1)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Document:
    """A parsed YAML document: its values, and where they stand."""

    value: Any
    node: yaml.Node | None

    def line(self, where: Sequence[str]) -> int:
        """Line (from 1) of the deepest part of `where` that the document has."""
        node, line = self.node, 1
        for part in where:
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == part), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line + 1, found[1]
            elif isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
                node = node.value[int(part)]
                line = node.start_mark.line + 1
            else:
                break
        return line


def parse(text: str) -> Document:
    """The one document in `text`.

    Raises:
        YamlFault: it is not YAML, it asks for objects, or a mapping has a key twice.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_repeats(node)
        return Document(yaml.safe_load(text), node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise YamlFault(line, f"not valid YAML: {getattr(error, 'problem', error)}") from error


def _refuse_repeats(node: yaml.Node | None) -> None:
    """YAML itself would take the last of two equal keys and drop the first without a word."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeats(item)
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            here = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and key.value in lines:
                raise YamlFault(here, f"{key.value}: was given in line {lines[key.value]}; keep one")
            if isinstance(key, yaml.ScalarNode):
                lines[key.value] = here
            _refuse_repeats(value)
