package quantize

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"velo/engine/weights"
)

// shard is the items of one file.
type shard struct {
	items []item
	bytes int64
}

// writeShards writes all tensors and, for more than one file, the index.
func (p *plan) writeShards(dir string) error {
	var shards []shard
	for _, it := range p.items {
		size := int64(0)
		for _, q := range it.parts() {
			size += q.bytes
		}
		if n := len(shards); n == 0 || shards[n-1].bytes > 0 && shards[n-1].bytes+size > p.o.ShardBytes {
			shards = append(shards, shard{})
		}
		s := &shards[len(shards)-1]
		s.items, s.bytes = append(s.items, it), s.bytes+size
		p.report.Before += int64(len(it.t.Data))
		p.report.After += size
	}
	index := map[string]string{}
	for i, s := range shards {
		name := "model.safetensors"
		if len(shards) > 1 {
			name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		}
		for _, it := range s.items {
			for _, q := range it.parts() {
				index[q.name] = name
			}
		}
		if err := p.writeShard(filepath.Join(dir, name), s); err != nil {
			return err
		}
	}
	if len(shards) == 1 {
		return nil
	}
	raw, err := json.MarshalIndent(map[string]any{
		"metadata":   map[string]any{"total_size": p.report.After},
		"weight_map": index,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), append(raw, '\n'), 0o644)
}

// writeShard writes one safetensors file.
func (p *plan) writeShard(path string, s shard) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	type entry struct {
		Dtype   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	at := int64(0)
	for _, it := range s.items {
		for _, q := range it.parts() {
			header[q.name] = entry{q.dtype, q.shape, [2]int64{at, at + q.bytes}}
			at += q.bytes
		}
	}
	raw, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(raw)%8 != 0 {
		raw = append(raw, ' ')
	}
	if _, err := f.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(raw)))); err != nil {
		return err
	}
	if _, err := f.Write(raw); err != nil {
		return err
	}
	for _, it := range s.items {
		pieces, err := p.pieces(it)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", it.t.Name, err)
		}
		for _, b := range pieces {
			if err := p.write(f, b); err != nil {
				return err
			}
		}
	}
	return f.Sync()
}

// write writes data, which may lie in a mapped file, until the plan's context ends.
func (p *plan) write(f *os.File, data []byte) (err error) {
	defer weights.Recover(debug.SetPanicOnFault(true), &err)
	for part := range slices.Chunk(data, 16<<20) {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		// The system would only say that the address is bad: what cannot be read is to be found out here.
		sum := byte(0)
		for i := 0; i < len(part); i += 4096 {
			sum += part[i]
		}
		runtime.KeepAlive(sum)
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return nil
}
