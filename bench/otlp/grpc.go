package otlp

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // senders may compress
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"velo/bench/otlp/decode"
)

// message is a gRPC message as bytes: package decode reads them, no generated code is needed. received
// is when it was there in full.
type message struct {
	body     string
	received time.Duration
}

// plainCodec hands messages over as they are.
type plainCodec struct{ now func() time.Duration }

func (plainCodec) Name() string { return "proto" }

func (plainCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(m.body)}, nil
}

func (c plainCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("cannot receive a %T", v)
	}
	m.received = c.now()
	m.body = textOf(data.Materialize())
	return nil
}

// grpcServer makes the server of one gRPC listener. The methods are served as streams of one message,
// which look the same on the wire: so the message is read when there is room for it.
func (r *Receiver) grpcServer(t *tls.Config) *grpc.Server {
	l := r.admission.current()
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(plainCodec{r.clock.now}), grpc.MaxRecvMsgSize(int(l.Body)), grpc.MaxConcurrentStreams(64),
		grpc.ConnectionTimeout(headTime), grpc.MaxHeaderListSize(64 << 10), grpc.InitialConnWindowSize(1 << 20), grpc.InitialWindowSize(1 << 20),
	}
	if t != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(t)))
	}
	g := grpc.NewServer(options...)
	for s, name := range services {
		g.RegisterService(&grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
			StreamName: "Export", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return r.export(stream, signal(s)) },
		}}}, struct{}{})
	}
	return g
}

// export serves one call.
func (r *Receiver) export(stream grpc.ServerStream, s signal) error {
	done, f := r.takeGRPC(stream, s)
	if f == nil {
		return stream.SendMsg(&message{body: string(successBody(s, decode.Protobuf, done))})
	}
	r.counters.count(f)
	st := status.New(codeOf(f.kind), f.message)
	if f.after > 0 {
		time.Sleep(penalty)
		if with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(f.after)}); err == nil {
			st = with
		}
	}
	return st.Err()
}

func (r *Receiver) takeGRPC(stream grpc.ServerStream, s signal) (result, *refusal) {
	ctx := stream.Context()
	if !r.authorized(authorization(ctx)) {
		return result{}, &refusal{kind: unauthorized, message: "the bearer token is missing or wrong"}
	}
	if f := r.admission.enter(); f != nil {
		return result{}, f
	}
	held := int64(0)
	defer func() { r.admission.leave(held) }()
	m, f := r.receive(stream)
	if f != nil {
		return result{}, f
	}
	if !r.admission.hold(int64(len(m.body))) {
		return result{}, &refusal{kind: full, message: "too many bytes at a time", after: time.Second}
	}
	held = int64(len(m.body))
	return r.ingest(ctx, s, decode.Protobuf, m.body, m.received)
}

// receive reads the message. As its size is not known before, only so many are read at a time as fit
// the bound of bytes at their greatest.
func (r *Receiver) receive(stream grpc.ServerStream) (*message, *refusal) {
	wait := time.NewTimer(r.admission.current().Wait)
	defer wait.Stop()
	select {
	case r.reading <- struct{}{}:
	case <-wait.C:
		return nil, &refusal{kind: busy, message: "too many requests at a time", after: time.Second}
	case <-stream.Context().Done():
		return nil, &refusal{kind: interrupted, message: "the call was ended"}
	}
	m := &message{}
	read := make(chan error, 1)
	go func() {
		read <- stream.RecvMsg(m)
		<-r.reading
	}()
	slow := time.NewTimer(headTime)
	defer slow.Stop()
	select {
	case err := <-read:
		if err == nil {
			return m, nil
		}
		switch st, _ := status.FromError(err); {
		case st.Code() == codeOf(tooLarge):
			return nil, tooLargeFor(r.admission.current())
		case st.Code() == codeOf(notFound):
			return nil, &refusal{kind: unsupported, message: st.Message()}
		default:
			return nil, &refusal{kind: interrupted, message: "the message did not come in full: " + err.Error()}
		}
	case <-slow.C: // returning from the call ends the read too
		return nil, &refusal{kind: interrupted, message: fmt.Sprintf("the message did not come within %v", headTime)}
	}
}

func authorization(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get("authorization"); len(v) > 0 {
		return v[0]
	}
	return ""
}
