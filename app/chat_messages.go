package app

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // so that pictures can be checked
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"net/http"
	"slices"
	"strings"
	"sync"

	_ "golang.org/x/image/webp" // likewise

	"velo/bench/client"
	"velo/store"
	"velo/ui/console"
)

// What a message may hold.
const (
	maxChatImages = 16
	maxChatImage  = 20 << 20 // bytes
	maxChatPixels = 1 << 28  // of one picture
)

// noResult answers a call of a tool that got no result: a call without one makes servers refuse the
// whole conversation.
const noResult = "No result was given."

// checkImages refuses what is not a picture that models take, and names each by what it is.
func checkImages(list []console.ChatImage) ([]console.ChatImage, error) {
	if len(list) > maxChatImages {
		return nil, fmt.Errorf("cannot send %d pictures in one message: %d are the most", len(list), maxChatImages)
	}
	total := 0
	out := slices.Clone(list)
	for i := range out {
		p := &out[i]
		name := p.Name
		if name == "" {
			name = fmt.Sprintf("picture %d", i+1)
			p.Name = name
		}
		total += len(p.Data)
		if len(p.Data) > maxChatImage {
			return nil, fmt.Errorf("cannot send %s: it has more than %d MiB; make it smaller", name, maxChatImage>>20)
		}
		p.MIME = http.DetectContentType(p.Data)
		if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, p.MIME) {
			return nil, fmt.Errorf("cannot send %s: models take PNG, JPEG, GIF or WebP, and it is %s", name, p.MIME)
		}
		config, _, err := image.DecodeConfig(bytes.NewReader(p.Data))
		if err != nil {
			return nil, fmt.Errorf("cannot send %s: it is damaged: %w", name, err)
		}
		if config.Width < 1 || config.Height < 1 || config.Width*config.Height > maxChatPixels {
			return nil, fmt.Errorf("cannot send %s: it has %d × %d pixels; make it smaller", name, config.Width, config.Height)
		}
	}
	if total > store.MaxChatFiles/2 {
		return nil, fmt.Errorf("cannot send the pictures: together they have more than %d MiB", store.MaxChatFiles>>21)
	}
	return out, nil
}

// answered tells whether a turn left something that the conversation can go on from.
func answered(u *store.ChatTurn) bool { return u.Answer != "" || len(callsOf(u)) > 0 }

// callsOf are the calls of a turn that can be sent back. Those of a turn that was cut off have no name.
func callsOf(u *store.ChatTurn) []client.ToolCall {
	var calls []client.ToolCall
	for i, c := range u.Calls {
		if c.Name == "" {
			continue
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i+1)
		}
		calls = append(calls, client.ToolCall(c))
	}
	return calls
}

// messages are those of a conversation up to the last of the turns, whose answer is not part of it.
// left are the turns that were not answered, and so are left out, question and all.
func (t *theChats) messages(chat string, turns []store.ChatTurn) (list []client.Message, left int, err error) {
	last := &turns[len(turns)-1]
	if last.System != "" {
		list = append(list, client.Message{Role: "system", Content: last.System})
	}
	var open []client.ToolCall // that the turn before made
	for i := range turns {
		u := &turns[i]
		if u != last && !answered(u) {
			left++
			continue
		}
		list = append(list, results(u, open)...)
		if u.Tool == "" && (len(u.Results) == 0 || u.Prompt != "") {
			m, err := t.question(chat, u)
			if err != nil {
				return nil, 0, err
			}
			list = append(list, m)
		}
		if u == last {
			break
		}
		open = callsOf(u)
		list = append(list, client.Message{Role: "assistant", Content: u.Answer, Calls: open})
	}
	return list, left, nil
}

// results answers the open calls with what a turn brings.
func results(u *store.ChatTurn, open []client.ToolCall) []client.Message {
	var list []client.Message
	given := false
	for i, c := range open {
		m := client.Message{Role: "tool", Content: noResult, CallID: c.ID}
		switch {
		case i < len(u.Results) && u.Results[i] != "":
			m.Content = u.Results[i]
		case u.Tool == c.Name && !given:
			m.Content, given = u.Prompt, true
		}
		list = append(list, m)
	}
	return list
}

// question is what the user says in a turn.
func (t *theChats) question(chat string, u *store.ChatTurn) (client.Message, error) {
	m := client.Message{Role: "user", Content: u.Prompt}
	if u.FillKey != "" {
		fill, err := t.file(chat, u.FillKey)
		if err != nil {
			return m, err
		}
		m.Content = string(fill)
		if u.Prompt != "" {
			m.Content += "\n\n" + u.Prompt
		}
	}
	for _, p := range u.Images {
		data, err := t.file(chat, p.Key)
		if err != nil {
			return m, err
		}
		m.Images = append(m.Images, client.Image{Name: p.Name, MIME: p.MIME, Data: data})
	}
	return m, nil
}

// fileCache keeps the files of one chat, the one that was looked at last.
type fileCache struct {
	mu    sync.Mutex
	chat  string
	bytes int
	files map[string][]byte
}

const maxCachedFiles = 256 << 20 // bytes

func (c *fileCache) forget(chat string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chat == chat {
		c.chat, c.bytes, c.files = "", 0, nil
	}
}

// file reads a file of a chat. Its bytes must not be changed.
func (t *theChats) file(chat, key string) ([]byte, error) {
	c := &t.files
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.chat != chat || c.bytes > maxCachedFiles {
		c.chat, c.bytes, c.files = chat, 0, map[string][]byte{}
	}
	if data, ok := c.files[key]; ok {
		return data, nil
	}
	data, err := t.console.store.ChatFile(chat, key)
	if err != nil {
		return nil, err
	}
	c.files[key] = data
	c.bytes += len(data)
	return data, nil
}

// checkMessage refuses what cannot be asked.
func checkMessage(m console.ChatMessage, before *store.ChatTurn) error {
	switch {
	case m.Fill < 0:
		return errors.New("cannot fill the context with fewer than 0 tokens")
	case m.Fill > maxChatFill:
		return fmt.Errorf("cannot fill the context with %d tokens: %d are the most", m.Fill, maxChatFill)
	case len(m.Text) > store.MaxChatText/4:
		return fmt.Errorf("cannot send a prompt of more than %d MiB", store.MaxChatText>>22)
	case m.Tool == "" && len(m.Results) == 0:
		if strings.TrimSpace(m.Text) == "" && len(m.Images) == 0 && m.Fill == 0 {
			return errors.New("cannot send an empty message: write something, add a picture, or fill the context")
		}
		return nil
	case before == nil || len(callsOf(before)) == 0:
		return errors.New("cannot send a tool's result: the turn before calls no tool")
	case len(m.Images) > 0 || m.Fill > 0:
		return errors.New("cannot send pictures or a context fill with a tool's result: send the result first")
	}
	calls := callsOf(before)
	if m.Tool != "" && !slices.ContainsFunc(calls, func(c client.ToolCall) bool { return c.Name == m.Tool }) {
		return fmt.Errorf("cannot send a result of the tool %q: the turn before does not call it", m.Tool)
	}
	if len(m.Results) > len(calls) {
		return fmt.Errorf("cannot send %d results: the turn before makes %d calls", len(m.Results), len(calls))
	}
	return nil
}
