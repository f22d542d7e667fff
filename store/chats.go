package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
)

// Chat is a conversation: its line in the list of chats, and what goes with the whole of it.
type Chat struct {
	ID         string          `json:"id"`
	Title      string          `json:"title"`
	Named      bool            `json:"named,omitempty"` // the user gave the title
	EndpointID string          `json:"endpoint_id"`
	Endpoint   string          `json:"endpoint"` // name, as it was last known
	Model      string          `json:"model,omitempty"`
	Began      time.Time       `json:"began"`
	Changed    time.Time       `json:"changed"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // the caller's
	Shown      string          `json:"shown,omitempty"`      // last turn of the branch that is shown
	Turns      int             `json:"turns"`                // on that branch
	Running    string          `json:"running,omitempty"`    // turn that had not ended when this was written
	Sessions   []string        `json:"sessions,omitempty"`   // that hold its raw events
}

// ChatTurn is a question and what came of it. The turns of a chat are a tree: those with the same
// parent are versions of one another.
type ChatTurn struct {
	ID      string       `json:"id"`
	Parent  string       `json:"parent,omitempty"`
	Asked   time.Time    `json:"asked"`
	Fill    int          `json:"fill,omitempty"`    // tokens of context fill
	FillBy  string       `json:"fill_by,omitempty"` // how they were counted
	FillKey string       `json:"fill_key,omitempty"`
	Images  []ChatImage  `json:"images,omitempty"`
	Tool    string       `json:"tool,omitempty"`    // it answers a call of this tool
	Results []string     `json:"results,omitempty"` // of the calls of the turn before, in their order
	Calls   []ChatCall   `json:"calls,omitempty"`
	Status  bench.Status `json:"status,omitempty"`
	Finish  string       `json:"finish,omitempty"`
	Error   string       `json:"error,omitempty"`
	Remarks []string     `json:"remarks,omitempty"`

	System   string          `json:"system,omitempty"` // prompt that it was asked with
	Sent     json.RawMessage `json:"sent,omitempty"`   // body without its messages
	URL      string          `json:"url,omitempty"`    // base URL that it was sent to
	Endpoint string          `json:"endpoint,omitempty"`
	Model    string          `json:"model,omitempty"`

	Session string `json:"session,omitempty"` // session with its raw events, and the number of the request in it
	Request int    `json:"request,omitempty"`

	// The texts are stored apart, so that a search reads nothing else.
	Prompt    string `json:"-"`
	Answer    string `json:"-"`
	Reasoning string `json:"-"`
}

// ChatImage is a picture of a turn; Key is that of its file.
type ChatImage struct {
	Name string `json:"name"`
	MIME string `json:"mime"`
	Key  string `json:"key"`
}

// ChatCall is a call of a tool.
type ChatCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// What a chat may hold. What is larger is refused with a sentence.
const (
	MaxChatTurns = 20_000
	MaxChatText  = 64 << 20  // bytes of one prompt, answer or reasoning
	MaxChatFiles = 128 << 20 // bytes of the pictures and the fill of one turn
)

// A chat is a bucket in bucketChats: under keyChat its Chat, and buckets with its turns, the texts of
// these and files.
var (
	keyChat  = []byte("chat")
	keyTurns = []byte("turns") // turn → ChatTurn
	keyTexts = []byte("texts") // turn, and one of textKinds → text
	keyFiles = []byte("files") // SHA-256 in hexadecimal digits → file
)

// The texts of a turn: in keyTexts, behind its ID.
const (
	textPrompt    = 'p'
	textAnswer    = 'a'
	textReasoning = 'r'
)

func createChats(tx *bolt.Tx) error {
	_, err := tx.CreateBucketIfNotExists(bucketChats)
	return err
}

// Chats lists the chats, that changed last first. One that cannot be read is left out.
func (s *Store) Chats() (list []Chat, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		return eachChat(tx, func(c Chat, _ *bolt.Bucket) { list = append(list, c) })
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the chats: %w", err)
	}
	sortChats(list)
	return list, nil
}

func sortChats(list []Chat) {
	slices.SortFunc(list, func(a, b Chat) int { return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(b.ID, a.ID)) })
}

func eachChat(tx *bolt.Tx, do func(Chat, *bolt.Bucket)) error {
	all := tx.Bucket(bucketChats)
	return all.ForEachBucket(func(id []byte) error {
		b := all.Bucket(id)
		var c Chat
		if json.Unmarshal(b.Get(keyChat), &c) == nil && c.ID == string(id) {
			do(c, b)
		}
		return nil
	})
}

// Chat reads a chat and all its turns, oldest first.
func (s *Store) Chat(id string) (c Chat, turns []ChatTurn, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		b, err := chatBucket(tx, id, &c)
		if err != nil {
			return err
		}
		texts := b.Bucket(keyTexts)
		return b.Bucket(keyTurns).ForEach(func(k, v []byte) error {
			var t ChatTurn
			if err := json.Unmarshal(v, &t); err != nil {
				return fmt.Errorf("its turn %s: %w", k, err)
			}
			get := func(kind byte) string { return string(texts.Get(textKey(t.ID, kind))) }
			t.Prompt, t.Answer, t.Reasoning = get(textPrompt), get(textAnswer), get(textReasoning)
			turns = append(turns, t)
			return nil
		})
	})
	if err != nil {
		return c, nil, fmt.Errorf("cannot read the chat %s: %w", id, err)
	}
	return c, turns, nil
}

func textKey(turn string, kind byte) []byte { return append([]byte(turn), kind) }

// chatBucket finds a chat's bucket and reads its Chat.
func chatBucket(tx *bolt.Tx, id string, c *Chat) (*bolt.Bucket, error) {
	b := tx.Bucket(bucketChats).Bucket([]byte(id))
	if b == nil {
		return nil, ErrNotFound
	}
	return b, json.Unmarshal(b.Get(keyChat), c)
}

// ChatFile reads a file of a chat.
func (s *Store) ChatFile(id, key string) (data []byte, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		var c Chat
		b, err := chatBucket(tx, id, &c)
		if err != nil {
			return err
		}
		v := b.Bucket(keyFiles).Get([]byte(key))
		if v == nil {
			return fmt.Errorf("its file %s: %w", key, ErrNotFound)
		}
		data = bytes.Clone(v)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the chat %s: %w", id, err)
	}
	return data, nil
}

// AddChat begins a chat. Its identity must be new.
func (s *Store) AddChat(c Chat) error {
	err := s.update(func(tx *bolt.Tx) error {
		if len(c.ID) == 0 || len(c.ID) > 64 {
			return fmt.Errorf("the identity %.70q has not 1 to 64 characters", c.ID)
		}
		b, err := tx.Bucket(bucketChats).CreateBucket([]byte(c.ID))
		if errors.Is(err, bolt.ErrBucketExists) {
			return ErrExists
		} else if err != nil {
			return err
		}
		for _, name := range [][]byte{keyTurns, keyTexts, keyFiles} {
			if _, err := b.CreateBucket(name); err != nil {
				return err
			}
		}
		return putJSON(b, string(keyChat), c)
	})
	if err != nil {
		return fmt.Errorf("cannot begin a chat: %w", err)
	}
	return nil
}

// ChangeChat changes what change changes, but its identity.
func (s *Store) ChangeChat(id string, change func(*Chat)) error {
	return s.changeChat(id, func(b *bolt.Bucket, c *Chat) error { change(c); return nil })
}

func (s *Store) changeChat(id string, change func(*bolt.Bucket, *Chat) error) error {
	err := s.update(func(tx *bolt.Tx) error {
		var c Chat
		b, err := chatBucket(tx, id, &c)
		if err != nil {
			return err
		}
		if err := change(b, &c); err != nil {
			return err
		}
		c.ID = id
		return putJSON(b, string(keyChat), c)
	})
	if err != nil {
		return fmt.Errorf("cannot change the chat %s: %w", id, err)
	}
	return nil
}

// ChatFileKey is the key of a file in a chat.
func ChatFileKey(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// PutChatTurn adds or replaces a turn, with the files that it brings, and changes the chat, all or
// nothing.
func (s *Store) PutChatTurn(id string, t ChatTurn, files [][]byte, change func(*Chat)) error {
	for what, text := range map[string]string{"prompt": t.Prompt, "answer": t.Answer, "reasoning": t.Reasoning} {
		if len(text) > MaxChatText {
			return fmt.Errorf("cannot keep the turn: its %s has more than %d MiB", what, MaxChatText>>20)
		}
	}
	size := 0
	for _, f := range files {
		size += len(f)
	}
	if size > MaxChatFiles {
		return fmt.Errorf("cannot keep the turn: its pictures and fill have more than %d MiB", MaxChatFiles>>20)
	}
	err := s.changeChat(id, func(b *bolt.Bucket, c *Chat) error {
		turns, texts := b.Bucket(keyTurns), b.Bucket(keyTexts)
		if turns.Get([]byte(t.ID)) == nil && turns.Stats().KeyN >= MaxChatTurns {
			return fmt.Errorf("it has %d turns, the most that a chat can have; begin a new one", MaxChatTurns)
		}
		for _, f := range files {
			key := []byte(ChatFileKey(f))
			if b.Bucket(keyFiles).Get(key) == nil {
				if err := b.Bucket(keyFiles).Put(key, f); err != nil {
					return err
				}
			}
		}
		for kind, text := range map[byte]string{textPrompt: t.Prompt, textAnswer: t.Answer, textReasoning: t.Reasoning} {
			key := textKey(t.ID, kind)
			if text == "" {
				if err := texts.Delete(key); err != nil {
					return err
				}
			} else if err := texts.Put(key, []byte(text)); err != nil {
				return err
			}
		}
		if err := putJSON(turns, t.ID, t); err != nil {
			return err
		}
		change(c)
		return nil
	})
	if err == nil {
		s.backups.ask()
	}
	return err
}

// DeleteChat removes a chat for good; one that is not there is no error. Its sessions are the caller's
// to delete.
func (s *Store) DeleteChat(id string) error {
	err := s.update(func(tx *bolt.Tx) error { return removeBucket(tx, bucketChats, []byte(id)) })
	if err != nil {
		return fmt.Errorf("cannot delete the chat %s: %w", id, err)
	}
	return nil
}
