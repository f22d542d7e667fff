package otlp

import (
	"encoding/json"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"velo/bench/otlp/decode"
)

// successBody is an Export…ServiceResponse: empty, or with a partial_success that says how many records
// were rejected and why.
func successBody(s signal, format decode.Format, done result) []byte {
	if format == decode.JSON {
		if done.rejected == 0 {
			return []byte("{}")
		}
		message, _ := json.Marshal(done.message)
		return []byte(`{"partialSuccess":{"` + rejectedFields[s] + `":"` + strconv.Itoa(done.rejected) + `","errorMessage":` + string(message) + `}}`)
	}
	if done.rejected == 0 {
		return nil
	}
	var partial []byte
	partial = protowire.AppendTag(partial, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(done.rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, done.message)
	b := protowire.AppendTag(nil, 1, protowire.BytesType)
	return protowire.AppendBytes(b, partial)
}

// codeOf is the gRPC code of a refusal. OTLP exporters try again after Unavailable, and after
// ResourceExhausted when it bears a time to wait.
func codeOf(k kind) codes.Code {
	switch k {
	case unauthorized:
		return codes.Unauthenticated
	case tooLarge, limited:
		return codes.ResourceExhausted
	case busy, full, interrupted:
		return codes.Unavailable
	case unsupported, method, notFound:
		return codes.Unimplemented
	}
	return codes.InvalidArgument
}

// failureBody is a google.rpc.Status.
func failureBody(format decode.Format, f *refusal) []byte {
	code := uint64(codeOf(f.kind))
	if format == decode.JSON {
		b, _ := json.Marshal(struct {
			Code    uint64 `json:"code"`
			Message string `json:"message"`
		}{code, f.message})
		return b
	}
	b := protowire.AppendTag(nil, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, code)
	b = protowire.AppendTag(b, 2, protowire.BytesType)
	return protowire.AppendString(b, f.message)
}
