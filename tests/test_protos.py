import filecmp
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import create_autospec

import grpc
import pytest
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.message import Message

from envoy_descriptors import definitions, differences, embedded_files, envoy_files
from zurelay import protos
from zurelay.protos import (
    accesslog_pb2,
    accesslog_service_pb2,
    accesslog_service_pb2_grpc,
    core_pb2,
    ext_proc_pb2,
    ext_proc_pb2_grpc,
    http_status_pb2,
    priority_group_pb2,
    processing_mode_pb2,
)

ROOT = Path(__file__).resolve().parents[1]
COMMITTED = Path(protos.__path__[0])
MODULES = {
    "accesslog": accesslog_pb2.DESCRIPTOR,
    "accesslog_service": accesslog_service_pb2.DESCRIPTOR,
    "core": core_pb2.DESCRIPTOR,
    "ext_proc": ext_proc_pb2.DESCRIPTOR,
    "http_status": http_status_pb2.DESCRIPTOR,
    "priority_group": priority_group_pb2.DESCRIPTOR,
    "processing_mode": processing_mode_pb2.DESCRIPTOR,
}


@pytest.fixture(name="envoy", scope="module")
def fixture_envoy() -> list[FileDescriptorProto]:
    return list(envoy_files().values())


def described(descriptor: FileDescriptor) -> FileDescriptorProto:
    copy = FileDescriptorProto()
    descriptor.CopyToProto(copy)
    return copy


def generated(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if "_pb2" in path.name)


def test_generating_again_gives_the_committed_files(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "proto" / "generate.py", tmp_path], check=True)
    fresh = tmp_path / "zurelay" / "protos"

    _, different, unreadable = filecmp.cmpfiles(fresh, COMMITTED, generated(fresh), shallow=False)

    assert generated(COMMITTED) == generated(fresh)
    assert (different, unreadable) == ([], [])


def test_every_proto_file_is_compared_below() -> None:
    assert sorted(path.stem for path in (ROOT / "proto" / "zurelay" / "protos").iterdir()) == sorted(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_every_field_value_and_method_is_envoys(name: str, envoy: list[FileDescriptorProto]) -> None:
    assert differences([described(MODULES[name])], envoy) == []


def member(file: FileDescriptorProto, name: str) -> DescriptorProto:
    return next(message for message in file.message_type if message.name == name)


def field(file: FileDescriptorProto, message: str, name: str) -> FieldDescriptorProto:
    return next(one for one in member(file, message).field if one.name == name)


def enum(file: FileDescriptorProto) -> EnumDescriptorProto:
    return member(file, "CommonResponse").enum_type[0]


EXT = "envoy.service.ext_proc.v3"
PROCESS = f"Process(stream .{EXT}.ProcessingRequest) returns (stream .{EXT}.ProcessingResponse)"
Change = Callable[[FileDescriptorProto], object]
# What is done to the file of ext_proc, where that must be found, and what must be said.
WRONG: dict[str, tuple[Change, str, str]] = {
    "field number nobody has": (
        lambda file: setattr(field(file, "HttpBody", "body"), "number", 99),
        "HttpBody",
        "bytes body = 99, but Envoy has nothing there",
    ),
    "field number of another field": (
        lambda file: setattr(field(file, "HttpHeaders", "end_of_stream"), "number", 1),
        "HttpHeaders",
        "bool end_of_stream = 1, but Envoy has message .envoy.config.core.v3.HeaderMap headers = 1",
    ),
    "field name": (
        lambda file: setattr(field(file, "HttpBody", "body"), "name", "bytes"),
        "HttpBody",
        "bytes bytes = 1, but Envoy has bytes body = 1",
    ),
    "type": (
        lambda file: setattr(field(file, "HttpBody", "body"), "type", FieldDescriptorProto.TYPE_STRING),
        "HttpBody",
        "string body = 1, but Envoy has bytes body = 1",
    ),
    "label": (
        lambda file: setattr(field(file, "HttpBody", "body"), "label", FieldDescriptorProto.LABEL_REPEATED),
        "HttpBody",
        "repeated bytes body = 1, but Envoy has bytes body = 1",
    ),
    "presence": (
        lambda file: setattr(field(file, "GrpcStatus", "status"), "proto3_optional", True),
        "GrpcStatus",
        "optional uint32 status = 1, but Envoy has uint32 status = 1",
    ),
    "message type": (
        lambda file: setattr(field(file, "BodyResponse", "response"), "type_name", ".zurelay.Other"),
        "BodyResponse",
        f"message .zurelay.Other response = 1, but Envoy has message .{EXT}.CommonResponse response = 1",
    ),
    "enum type": (
        lambda file: setattr(field(file, "CommonResponse", "status"), "type_name", ".zurelay.Other"),
        "CommonResponse",
        f"enum .zurelay.Other status = 1, but Envoy has enum .{EXT}.CommonResponse.ResponseStatus status = 1",
    ),
    "field outside its oneof": (
        lambda file: field(file, "BodyMutation", "clear_body").ClearField("oneof_index"),
        "BodyMutation",
        "bool clear_body = 2, but Envoy has bool clear_body = 2 in oneof mutation",
    ),
    "oneof name": (
        lambda file: setattr(member(file, "BodyMutation").oneof_decl[0], "name", "change"),
        "BodyMutation",
        "bool clear_body = 2 in oneof change, but Envoy has bool clear_body = 2 in oneof mutation",
    ),
    "map that is a plain message": (
        lambda file: member(file, "ProcessingResponse").nested_type[0].options.Clear(),
        "ProcessingResponse.TypedDynamicMetadataEntry",
        "map_entry = False, but Envoy has map_entry = True",
    ),
    "message name": (
        lambda file: setattr(member(file, "HttpTrailers"), "name", "Trailers"),
        "Trailers",
        "Envoy has no such message",
    ),
    "service name": (
        lambda file: setattr(file.service[0], "name", "Processor"),
        "Processor",
        "Envoy has no such service",
    ),
    "enum name": (
        lambda file: setattr(enum(file), "name", "Status"),
        "CommonResponse.Status",
        "Envoy has no such enum",
    ),
    "enum value's name": (
        lambda file: setattr(enum(file).value[1], "name", "REPLACE"),
        "CommonResponse.ResponseStatus",
        "REPLACE = 1, but Envoy has CONTINUE_AND_REPLACE = 1",
    ),
    "enum value's number": (
        lambda file: setattr(enum(file).value[1], "number", 7),
        "CommonResponse.ResponseStatus",
        "CONTINUE_AND_REPLACE = 7, but Envoy has nothing there",
    ),
    "enum value left out": (
        lambda file: enum(file).value.pop(),
        "CommonResponse.ResponseStatus",
        "CONTINUE_AND_REPLACE = 1 is missing",
    ),
    "method name": (
        lambda file: setattr(file.service[0].method[0], "name", "Handle"),
        "ExternalProcessor",
        f"{PROCESS.replace('Process(', 'Handle(')}, but Envoy has nothing there",
    ),
    "method that takes something else": (
        lambda file: setattr(file.service[0].method[0], "input_type", f".{EXT}.HttpBody"),
        "ExternalProcessor",
        f"{PROCESS.replace('ProcessingRequest', 'HttpBody')}, but Envoy has {PROCESS}",
    ),
    "method that doesn't stream": (
        lambda file: setattr(file.service[0].method[0], "server_streaming", False),
        "ExternalProcessor",
        f"{PROCESS.replace('returns (stream ', 'returns (')}, but Envoy has {PROCESS}",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_descriptor_is_found(name: str, envoy: list[FileDescriptorProto]) -> None:
    change, where, problem = WRONG[name]
    file = described(ext_proc_pb2.DESCRIPTOR)
    change(file)

    assert f"{EXT}.{where}: {problem}" in differences([file], envoy)


@pytest.mark.parametrize(
    ("message", "number", "name"),
    [
        (ext_proc_pb2.ProcessingResponse, 7, "immediate_response"),
        (ext_proc_pb2.ProcessingResponse, 8, "dynamic_metadata"),
        (ext_proc_pb2.ProcessingResponse, 10, "override_message_timeout"),
        (ext_proc_pb2.ProcessingResponse, 11, "streamed_immediate_response"),
        (ext_proc_pb2.ProcessingResponse, 13, "typed_dynamic_metadata"),
        (ext_proc_pb2.ProcessingRequest, 11, "protocol_config"),
        (priority_group_pb2.PriorityGroupsOverride, 1, "priority_groups"),
        (accesslog_pb2.AccessLogCommon, 17, "metadata"),
        (accesslog_pb2.AccessLogCommon, 21, "filter_state_objects"),
        (accesslog_pb2.AccessLogCommon, 26, "stream_id"),
    ],
)
def test_the_fields_zurelay_stands_on_are_here(message: type[Message], number: int, name: str) -> None:
    assert name == message.DESCRIPTOR.fields_by_number[number].name


@pytest.mark.parametrize(
    ("add", "servicer", "path"),
    [
        (
            ext_proc_pb2_grpc.add_ExternalProcessorServicer_to_server,
            ext_proc_pb2_grpc.ExternalProcessorServicer(),
            "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
        ),
        (
            accesslog_service_pb2_grpc.add_AccessLogServiceServicer_to_server,
            accesslog_service_pb2_grpc.AccessLogServiceServicer(),
            "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
        ),
    ],
)
def test_a_server_answers_at_the_path_that_envoy_calls(
    add: Callable[[object, object], None], servicer: object, path: str, envoy: list[FileDescriptorProto]
) -> None:
    server = create_autospec(grpc.Server, instance=True)
    add(servicer, server)
    (name, handlers) = server.add_registered_method_handlers.call_args.args
    service = definitions(envoy)[name]

    assert isinstance(service, ServiceDescriptorProto)
    assert [path] == [f"/{name}/{method.name}" for method in service.method]
    assert list(handlers) == [method.name for method in service.method]


WHOLE = FileDescriptorProto(name="envoy/a.proto", package="envoy", syntax="proto3", dependency=["envoy/b.proto"])
WHOLE.message_type.add(name="M").field.add(name="f", number=1)
BYTES = WHOLE.SerializeToString()
NO_SYNTAX = FileDescriptorProto(name="envoy/a.proto", package="envoy").SerializeToString()


@pytest.mark.parametrize(
    ("data", "names"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(BYTES, ["envoy/a.proto"], id="alone"),
        pytest.param(b"\n\x07envoy/\n" + BYTES * 2 + b"\x72\x00\n", ["envoy/a.proto"], id="twice, among other data"),
        pytest.param(BYTES[:-1], [], id="cut in its last field"),
        pytest.param(BYTES[:-7], [], id="cut between two fields"),
        pytest.param(NO_SYNTAX + b"\xff" * 20, [], id="proto2, then no varint"),
        pytest.param(NO_SYNTAX + BYTES, ["envoy/a.proto"], id="proto2, then a whole one"),
        pytest.param(b'\n\x0denvoy/a.proto\x12\x05envoy"\x01\xffb\x06proto3', [], id="a message that is none"),
        pytest.param(b"\n\x0denvoy/a.proto\x12\x05envoyb\x06proto4", [], id="another syntax"),
        pytest.param(b"\n\x0cenvoy/a.proto\x12\x05envoyb\x06proto3", [], id="a length that isn't the name's"),
    ],
)
def test_a_binary_is_searched_for_whole_files(data: bytes, names: list[str]) -> None:
    assert names == list(embedded_files(data))


def test_copies_that_differ_in_json_names_are_one_file() -> None:
    other = FileDescriptorProto.FromString(BYTES)
    other.message_type[0].field[0].json_name = "f"

    found = embedded_files(other.SerializeToString() + BYTES)

    assert list(found.values()) == [WHOLE]


def test_two_different_copies_of_a_file_are_refused() -> None:
    other = FileDescriptorProto(name="envoy/a.proto", package="envoy", syntax="proto3")

    with pytest.raises(ValueError, match="twice"):
        embedded_files(BYTES + other.SerializeToString())
