from google.protobuf import wrappers_pb2 as _wrappers_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClusterWeight(_message.Message):
    __slots__ = ("cluster_name", "weight")
    CLUSTER_NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    cluster_name: str
    weight: _wrappers_pb2.UInt32Value
    def __init__(self, cluster_name: _Optional[str] = ..., weight: _Optional[_Union[_wrappers_pb2.UInt32Value, _Mapping]] = ...) -> None: ...

class PriorityGroup(_message.Message):
    __slots__ = ("name", "clusters")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    clusters: _containers.RepeatedCompositeFieldContainer[ClusterWeight]
    def __init__(self, name: _Optional[str] = ..., clusters: _Optional[_Iterable[_Union[ClusterWeight, _Mapping]]] = ...) -> None: ...

class PriorityGroupsOverride(_message.Message):
    __slots__ = ("priority_groups",)
    PRIORITY_GROUPS_FIELD_NUMBER: _ClassVar[int]
    priority_groups: _containers.RepeatedCompositeFieldContainer[PriorityGroup]
    def __init__(self, priority_groups: _Optional[_Iterable[_Union[PriorityGroup, _Mapping]]] = ...) -> None: ...
