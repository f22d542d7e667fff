"""Reads OTLP requests with the Python package opentelemetry-proto and prints what is in them.

read_otlp.py json|protobuf FOLDER, where FOLDER holds request bodies named logs, metrics and traces.
"""
import base64
import json
import pathlib
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

sys.stdout.reconfigure(encoding="utf-8")
kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def base64_ids(value):
    """OTLP/JSON has ids in hex; protobuf's own JSON, which json_format reads, has base64."""
    if isinstance(value, dict):
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ("traceId", "spanId", "parentSpanId") else base64_ids(v)
                for k, v in value.items()}
    if isinstance(value, list):
        return [base64_ids(v) for v in value]
    return value


def read(name, message):
    body = (folder / name).read_bytes()
    if kind == "json":
        json_format.ParseDict(base64_ids(json.loads(body)), message)
    else:
        message.ParseFromString(body)
    return message


def attributes(item):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in item.attributes}


r = read("logs", ExportLogsServiceRequest()).resource_logs[0]
s = r.scope_logs[0]
print("logs", attributes(r.resource)["service.name"], s.scope.name, s.scope.version, len(s.log_records))
for i, record in enumerate(s.log_records):
    a = attributes(record)
    assert record.observed_time_unix_nano == record.time_unix_nano
    print(i, record.time_unix_nano, a["event"], a["token.index"], a["request.id"], record.body.string_value)
for m in read("metrics", ExportMetricsServiceRequest()).resource_metrics[0].scope_metrics[0].metrics:
    p = m.histogram.data_points[0]
    print("metrics", m.name, list(p.explicit_bounds), list(p.bucket_counts), p.count, p.sum, m.histogram.aggregation_temporality)
for s in read("traces", ExportTraceServiceRequest()).resource_spans[0].scope_spans[0].spans:
    print("traces", s.name, s.kind, s.trace_id.hex(), s.parent_span_id.hex(), len(s.events), s.events[0].name,
          s.events[0].time_unix_nano - s.start_time_unix_nano)
