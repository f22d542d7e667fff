package pages_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"velo/store/pages"
)

// database makes a file with everything that the walk must know: nested and inline buckets, branch
// pages, values that overflow their page, free pages.
func database(tb testing.TB, keys int) []byte {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "x.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096})
	if err != nil {
		tb.Fatal(err)
	}
	update := func(fn func(*bolt.Tx) error) {
		if err := db.Update(fn); err != nil {
			tb.Fatal(err)
		}
	}
	update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("outer"))
		if err != nil {
			return err
		}
		for i := range keys {
			if err := b.Put(fmt.Appendf(nil, "key %06d", i), bytes.Repeat([]byte{byte(i)}, 50+i%200)); err != nil {
				return err
			}
		}
		inner, err := b.CreateBucket([]byte("small"))
		if err != nil {
			return err
		}
		if err := inner.Put([]byte("a"), []byte("b")); err != nil {
			return err
		}
		large, err := b.CreateBucket([]byte("large"))
		if err != nil {
			return err
		}
		for i := range 5 {
			if err := large.Put([]byte{byte(i)}, make([]byte, 100_000)); err != nil {
				return err
			}
		}
		return large.Put(bytes.Repeat([]byte("k"), 10_000), []byte("a long key"))
	})
	update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("outer"))
		for i := 0; i < keys; i += 3 {
			if err := b.Delete(fmt.Appendf(nil, "key %06d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func check(data []byte) error {
	f, err := pages.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	_, err = f.Walk(f.Metas()[0])
	return err
}

func TestWalkAcceptsWhatBboltWrites(t *testing.T) {
	for _, keys := range []int{0, 1, 10, 5000} {
		data := database(t, keys)
		f, err := pages.Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		u, err := f.Walk(f.Metas()[0])
		if err != nil {
			t.Fatalf("%d keys: %v", keys, err)
		}
		if u.Free == 0 || u.Free >= u.Pages || f.PageSize() != 4096 {
			t.Fatalf("%d keys: %+v", keys, u)
		}
		if len(f.Metas()) != 2 || f.Metas()[0].Tx != f.Metas()[1].Tx+1 {
			t.Fatalf("got metas %+v", f.Metas())
		}
	}
}

func TestWalkRefusesTruncated(t *testing.T) {
	data := database(t, 3000)
	f, err := pages.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	used := int(f.Metas()[0].Pages) * 4096
	for cut := 0; cut < used; cut += 1000 {
		if err := check(data[:cut]); !errors.Is(err, pages.ErrDamaged) {
			t.Fatalf("cut at %d of %d: got %v", cut, used, err)
		}
	}
}

// Whatever page is overwritten, a tree that refers to it is refused; a free page does not matter.
func TestWalkRefusesOverwrittenPages(t *testing.T) {
	data := database(t, 3000)
	found := 0
	for at := 8192; at < len(data); at += 4096 {
		if bytes.Equal(data[at:at+16], make([]byte, 16)) {
			continue // the inside of an overflow, or never used
		}
		bad := bytes.Clone(data)
		copy(bad[at:], bytes.Repeat([]byte{0xA5}, 4096))
		if check(bad) != nil {
			found++
		}
	}
	if found < 20 {
		t.Fatalf("only %d overwritten pages were found", found)
	}
}

func TestOpenUsesTheOtherHead(t *testing.T) {
	data := database(t, 100)
	f, err := pages.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for slot := range 2 {
		bad := bytes.Clone(data)
		copy(bad[slot*4096:], make([]byte, 4096))
		g, err := pages.Open(bytes.NewReader(bad), int64(len(bad)))
		if err != nil || len(g.Metas()) != 1 || g.Metas()[0].Slot != 1-slot || g.PageSize() != f.PageSize() {
			t.Fatalf("head %d gone: %v, %+v", slot, err, g)
		}
	}
	if err := check(make([]byte, 100_000)); !errors.Is(err, pages.ErrDamaged) {
		t.Fatalf("got %v", err)
	}
}

// The walk must end, without a panic, whatever the bytes: a database with a few of them changed.
func FuzzWalk(f *testing.F) {
	data := database(f, 40)
	f.Add(uint32(4096*3+8), []byte{1, 2, 3}, uint32(0))
	f.Add(uint32(32), []byte{9}, uint32(1))
	f.Fuzz(func(t *testing.T, at uint32, change []byte, cut uint32) {
		bad := bytes.Clone(data)
		if int(at) < len(bad) {
			copy(bad[at:], change)
		}
		bad = bad[:len(bad)-int(cut)%len(bad)]
		_ = check(bad)
	})
}
