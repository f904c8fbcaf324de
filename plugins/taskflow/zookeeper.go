package taskflow

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/job"
)

// DecodeZooKeeper reads the data of a job's node, or of one in the trash. When
// the job was posted and its sequence number are not in it: they are the node's
// creation time and the number in its name.
func DecodeZooKeeper(data []byte) (Posting, error) {
	p := Posting{Encoding: job.JSON}
	if len(data) > MaxPosting {
		return p, corrupt("the posting has %d bytes: want at most %d", len(data), MaxPosting)
	}
	s, err := scanObject(data)
	if err != nil {
		return p, corrupt("the posting is not JSON: %v", err)
	}
	seen := map[string]bool{}
	err = s.members(func(key string) error {
		value, err := s.value(1)
		if err != nil {
			return within(clip(key), err)
		}
		seen[key] = true
		return p.readJSONMember(key, value)
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return p, corrupt("the posting: %v", err)
	case !seen["uuid"]:
		return p, corrupt("the posting has no uuid")
	case !seen["name"]:
		return p, corrupt("the posting has no name")
	}
	return p, nil
}

// readJSONMember takes one member of a posting. The last of several with one
// key counts, as in Python.
func (p *Posting) readJSONMember(key string, value []byte) error {
	text, isText := textOf(value)
	problem := func(want string) error { return corrupt("%s: it is %.64s: want %s", key, value, want) }
	var err error
	switch key {
	case "uuid":
		if p.ID, err = job.ParseID(text); err != nil || p.ID.String() != text {
			return problem("a uuid in lower case")
		}
	case "name":
		if !isText && string(value) != "null" {
			return problem("text")
		}
		p.Name = text
	case "priority":
		if !isText {
			return problem("text")
		}
		p.Priority, err = parsePriority(text)
	case "details":
		p.Details = value
	case "book":
		p.Book = bookOf(value)
	case extraKey:
		if extra, wrong := base64.StdEncoding.DecodeString(text); isText && wrong == nil {
			p.Extra = extra
		}
	}
	return err
}

// textOf returns what a value that was gone over reads, if it is text.
func textOf(value []byte) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	return new(scanner).unquote(value), true
}

// bookOf reads a logbook's uuid and name, as far as they are there.
func bookOf(value []byte) job.Book {
	var book job.Book
	s := &scanner{text: value}
	if s.peek() != '{' {
		return book
	}
	_ = s.members(func(key string) error { // it was gone over
		value, err := s.value(1)
		switch text, _ := textOf(value); key {
		case "uuid":
			book.UUID = text
		case "name":
			book.Name = text
		}
		return err
	})
	return book
}

// EncodeZooKeeper writes a posting as TaskFlow's ZooKeeper jobboard does.
// Details must be JSON and stand in it byte for byte.
func EncodeZooKeeper(p *Posting) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	details := p.Details
	switch {
	case details == nil:
		details = []byte("{}")
	case p.Encoding != job.JSON:
		return nil, invalid("details: TaskFlow keeps JSON in ZooKeeper: want encoding %q, got %q", job.JSON, p.Encoding)
	default:
		if err := CheckJSONDetails(details); err != nil {
			return nil, err
		}
	}
	out := make([]byte, 0, 160+len(p.Name)+len(details)+2*len(p.Extra))
	out = quote(append(out, `{"uuid": `...), p.ID.String())
	out = quote(append(out, `, "name": `...), p.Name)
	out = quote(append(out, `, "priority": `...), p.Priority.String())
	out = append(append(out, `, "details": `...), details...)
	if p.Book != (job.Book{}) {
		out = quote(append(out, `, "book": {"name": `...), p.Book.Name)
		out = append(quote(append(out, `, "uuid": `...), p.Book.UUID), '}')
	}
	if p.Extra != nil {
		out = append(out, `, "`+extraKey+`": "`...)
		out = append(base64.StdEncoding.AppendEncode(out, p.Extra), '"')
	}
	return append(out, '}'), nil
}

// CheckJSONDetails refuses details that are no JSON object to Python, so that
// TaskFlow could not read them back. NaN and its like are JSON to Python.
func CheckJSONDetails(details []byte) error {
	s, err := scanObject(details)
	if err == nil {
		if _, err = s.value(1); err == nil {
			err = s.end()
		}
	}
	if err != nil {
		return invalid("details: %v", err)
	}
	return nil
}

// EncodeLock writes the data of a claim's lock.
func EncodeLock(owner string) ([]byte, error) {
	if owner == "" || !utf8.ValidString(owner) {
		return nil, invalid("owner: want UTF-8 text that is not empty")
	}
	return append(quote([]byte(`{"owner": `), owner), '}'), nil
}

// DecodeLock reads the data of a claim's lock. An empty owner means that
// TaskFlow takes the job for unclaimed, although nobody can claim it.
func DecodeLock(data []byte) (owner string, err error) {
	s, err := scanObject(data)
	if err != nil {
		return "", corrupt("the lock: %v", err)
	}
	err = s.members(func(key string) error {
		value, err := s.value(1)
		if key == "owner" {
			owner, _ = textOf(value)
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return "", corrupt("the lock: %v", err)
	}
	return owner, nil
}
