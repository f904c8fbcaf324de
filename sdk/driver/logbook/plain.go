package logbook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// plain makes of what Python's json writes what everybody's reads: the numbers
// that JSON has no word for become the texts "NaN", "Infinity" and "-Infinity",
// as in protobuf's JSON. Everything else stays as it is, without the space
// around it.
func plain(item []byte) ([]byte, error) {
	text := bytes.TrimSpace(item)
	switch {
	case len(text) == 0:
		return nil, errors.New("it is empty")
	case !utf8.Valid(text):
		return nil, errors.New("it is no UTF-8")
	}
	text = quoteWords(text)
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, fmt.Errorf("at byte %d: %w", at.Offset, err)
		}
		return nil, err
	}
	return text, nil
}

// words are the numbers of Python's json that are not JSON. A longer one comes
// before its end.
var words = [][]byte{[]byte("-Infinity"), []byte("Infinity"), []byte("NaN")}

// quoteWords puts words outside of texts into quotes.
func quoteWords(text []byte) []byte {
	if !bytes.Contains(text, words[1]) && !bytes.Contains(text, words[2]) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for i, quoted := 0, false; i < len(text); {
		if word := wordAt(text[i:]); word != nil && !quoted {
			out = append(append(append(out, '"'), word...), '"')
			i += len(word)
			continue
		}
		switch {
		case text[i] == '\\' && quoted && i+1 < len(text):
			out = append(out, text[i])
			i++
		case text[i] == '"':
			quoted = !quoted
		}
		out = append(out, text[i])
		i++
	}
	return out
}

func wordAt(text []byte) []byte {
	for _, word := range words {
		if bytes.HasPrefix(text, word) {
			return word
		}
	}
	return nil
}
