package host

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// appendLine writes a whole log line.
func appendLine(w []byte, at time.Time, level slog.Level, message string, attrs []slog.Attr) []byte {
	w = appendHead(w, at, level, message)
	for _, a := range attrs {
		w = appendAttr(w, "", a)
	}
	return append(cut(w), '\n')
}

// appendHead writes 2026-11-30T20:15:04.123Z INFO message. The message stays
// readable: only what would end the line or hide in it is escaped.
func appendHead(w []byte, at time.Time, level slog.Level, message string) []byte {
	w = at.UTC().AppendFormat(w, "2006-01-02T15:04:05.000Z")
	w = append(w, ' ')
	w = append(w, level.String()...)
	w = append(w, ' ')
	return appendPlain(w, message)
}

// appendAttr writes " key=value"; a value with a space, a quote or an equals
// sign in it, or with nothing in it, is quoted as in Go. The attributes of a
// group get its name and a dot in front.
func appendAttr(w []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return w
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			w = appendAttr(w, prefix, inner)
		}
		return w
	}
	w = append(w, ' ')
	w = appendText(w, prefix+a.Key)
	w = append(w, '=')
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().UTC().AppendFormat(w, time.RFC3339Nano)
	case slog.KindAny:
		switch x := v.Any().(type) {
		case error:
			return appendText(w, safely(x.Error))
		case fmt.Stringer:
			return appendText(w, safely(x.String))
		}
		return appendText(w, fmt.Sprint(v.Any()))
	default:
		return appendText(w, v.String())
	}
}

// safely calls a method that a nil pointer may not have expected.
func safely(text func() string) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("!panic: %v", p)
		}
	}()
	return text()
}

func appendText(w []byte, s string) []byte {
	plain := s != ""
	for _, r := range s {
		if r <= ' ' || r == '"' || r == '=' || r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			plain = false
			break
		}
	}
	if plain {
		return append(w, s...)
	}
	return strconv.AppendQuote(w, s)
}

// appendPlain writes a text as it is but for control characters and what is
// not UTF-8, which are escaped.
func appendPlain(w []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != ' ' && (r == utf8.RuneError && n == 1 || !unicode.IsPrint(r)) {
			q := strconv.AppendQuote(nil, s[i:i+n])
			w = append(w, q[1:len(q)-1]...)
		} else {
			w = append(w, s[i:i+n]...)
		}
		i += n
	}
	return w
}

// cut shortens a line that is too long, at a character.
func cut(w []byte) []byte {
	if len(w) <= logLine {
		return w
	}
	n := logLine
	for n > 0 && !utf8.RuneStart(w[n]) {
		n--
	}
	return append(w[:n], " …(cut)"...)
}
