package server

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	sessionsKept    = 256
	sessionsScanned = 64
	sessionLife     = 30 * time.Minute
)

// sessions remembers recent conversations, so that a request that goes on with one gets its key.
type sessions struct {
	mu    sync.Mutex
	known []conversation // oldest first
	now   func() time.Time
}

// conversation is a list of messages, kept as its length and hash.
type conversation struct {
	messages int
	hash     [sha256.Size]byte
	key      string
	used     time.Time
}

// readSession is the key of the conversation that a request belongs to: the header X-Session-Id,
// metadata.session_id, metadata.conversation_id, the conversation whose messages it goes on from,
// or a new one.
func (s *Server) readSession(o *object, header string, messages []message) (string, *Error) {
	key := ""
	if raw := o.raw("metadata"); raw != nil {
		m, e := newObject(raw, InvalidBody, "metadata.", "metadata")
		if e != nil {
			return "", e
		}
		for _, name := range []string{"session_id", "conversation_id"} {
			text, ok, e := m.text(name)
			if e != nil {
				return "", e
			}
			if ok && key == "" {
				key = text
			}
		}
	}
	if header != "" {
		key = header
	}
	if len(key) > maxSession || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fail(InvalidBody, "metadata.session_id", "cannot use the session's name: it must have at most %d bytes, none of them a control character", maxSession)
	}
	return s.sessions.join(key, messages), nil
}

// join remembers a conversation under a key, and finds or makes one where it is "".
func (s *sessions) join(key string, messages []message) string {
	hashes := make([][sha256.Size]byte, len(messages)+1)
	h := sha256.New()
	for i, m := range messages {
		addMessage(h, m)
		h.Sum(hashes[i+1][:0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for len(s.known) > 0 && now.Sub(s.known[0].used) > sessionLife {
		s.known = s.known[1:]
	}
	at, longest := -1, 0
	for i := len(s.known) - 1; i >= max(0, len(s.known)-sessionsScanned); i-- {
		c := s.known[i]
		if c.messages > longest && c.messages < len(hashes)-1 && c.hash == hashes[c.messages] && (key == "" || key == c.key) {
			at, longest = i, c.messages
		}
	}
	if at >= 0 {
		key = s.known[at].key
		s.known = append(s.known[:at], s.known[at+1:]...)
	}
	if key == "" {
		id := uuid.New()
		key = "sess-" + hex.EncodeToString(id[10:])
	}
	if len(messages) > 0 {
		s.known = append(s.known, conversation{len(messages), hashes[len(messages)], key, now})
	}
	if over := len(s.known) - sessionsKept; over > 0 {
		s.known = append([]conversation(nil), s.known[over:]...)
	}
	return key
}

func addMessage(h hash.Hash, m message) {
	h.Write(quoted(m.role))
	h.Write(quoted(m.content))
	if m.fields != nil {
		h.Write(m.fields.values["tool_calls"])
		h.Write(m.fields.values["tool_call_id"])
	}
	h.Write([]byte{0})
}
