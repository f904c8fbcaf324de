package taskflow

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/boardd/boardd/sdk/job"
)

// DecodeRedis reads one field of a board's listings or trash. The names of the
// job's other keys are made from the field, so the job's ID is the field's; the
// uuid within the value, which TaskFlow only shows, may differ.
func DecodeRedis(field string, value []byte) (Posting, error) {
	p := Posting{Encoding: job.Msgpack}
	id, err := job.ParseID(field)
	if err != nil || id.String() != field {
		return p, corrupt("the field %q is not a uuid in lower case", clip(field))
	}
	p.ID = id
	if len(value) > MaxPosting {
		return p, corrupt("the posting has %d bytes: want at most %d", len(value), MaxPosting)
	}
	r := reader{data: value}
	head, err := r.next()
	switch {
	case err != nil:
		return p, corrupt("the posting is not msgpack: %v", err)
	case head.kind != kindMap:
		return p, corrupt("the posting is %v: want a map", head.kind)
	}
	var seen [4]bool
	for range head.bits {
		if err := p.readMember(&r, &seen); err != nil {
			return p, err
		}
	}
	if r.at != len(value) {
		return p, corrupt("%d bytes follow the posting", len(value)-r.at)
	}
	for i, ok := range seen {
		if !ok {
			return p, corrupt("the posting has no %s", required[i])
		}
	}
	return p, nil
}

// required are the keys without which TaskFlow does not take a posting.
var required = [4]string{"uuid", "name", "created_on", "sequence"}

// readMember reads one key of a posting with its value.
func (p *Posting) readMember(r *reader, seen *[4]bool) error {
	key, err := r.key()
	if err != nil {
		return corrupt("the posting: %v", err)
	}
	name := member(key)
	for i := range required {
		seen[i] = seen[i] || name == required[i]
	}
	if name == "created_on" {
		if p.CreatedAt, err = r.createdAt(); err != nil {
			return corrupt("%v", within(name, err))
		}
		return nil
	}
	raw, err := r.raw(1)
	if err != nil {
		return corrupt("%v", within(clip(string(key.body)), err))
	}
	v, _ := (&reader{data: raw}).next() // it was walked over
	switch name {
	case "name":
		return p.readName(v)
	case "priority":
		if v.kind != kindStr {
			return corrupt("priority: it is %v: want text", v.kind)
		}
		p.Priority, err = parsePriority(string(v.body))
		return err
	case "sequence":
		if v.kind != kindUint {
			return corrupt("sequence: it is %v: want a whole number of 0 or more", v.kind)
		}
		p.Sequence = v.bits
	case "details":
		p.Details = raw
	case "book":
		p.Book = readBook(raw)
	case extraKey:
		if v.kind == kindBin {
			p.Extra = v.body
		}
	}
	return nil
}

// member returns the name of a key that means something here, or nothing. Bytes
// are another key to Python.
func member(key value) string {
	if key.kind == kindStr {
		for _, name := range [...]string{"uuid", "name", "priority", "created_on", "details", "book", "sequence", extraKey} {
			if string(key.body) == name {
				return name // the constant: a copy of the key would be garbage
			}
		}
	}
	return ""
}

// readName reads a job's name. TaskFlow does not look at what a poster gives;
// what is no text at all can hardly be shown.
func (p *Posting) readName(v value) error {
	switch v.kind {
	case kindStr:
		p.Name = string(v.body)
	case kindNil:
		p.Name = ""
	default:
		return corrupt("name: it is %v: want text", v.kind)
	}
	return nil
}

// createdAt reads the time of a post. TaskFlow's workers take a job whose time
// is none, so it is not an error; its own readers fail when they are asked for
// last_modified.
func (r *reader) createdAt() (time.Time, error) {
	start := r.at
	v, err := r.next()
	if err == nil && v.kind == kindExt && v.code == extDatetime {
		return readDatetime(v.body, 2)
	}
	r.at = start
	if _, err := r.walk(1); err != nil {
		return time.Time{}, err
	}
	if v.kind == kindExt && v.code == extTimestamp {
		return timestamp(v.body), nil
	}
	return time.Time{}, nil
}

// timestamp reads msgpack's own time, which many programs in other languages
// write, and which checkTimestamp has looked at.
func timestamp(body []byte) time.Time {
	switch len(body) {
	case 4:
		return time.Unix(int64(binary.BigEndian.Uint32(body)), 0).UTC()
	case 8:
		n := binary.BigEndian.Uint64(body)
		return time.Unix(int64(n&(1<<34-1)), int64(n>>34)).UTC()
	}
	seconds := int64(binary.BigEndian.Uint64(body[4:]))
	if seconds < -62135596800 || seconds > 253402300799 { // years 1 to 9999
		return time.Time{}
	}
	return time.Unix(seconds, int64(binary.BigEndian.Uint32(body))).UTC()
}

// readBook reads a logbook's uuid and name. Whatever else stands there is
// nobody's concern but that of who opens the book.
func readBook(raw []byte) job.Book {
	var book job.Book
	r := reader{data: raw}
	head, _ := r.next()
	if head.kind != kindMap {
		return book
	}
	for range head.bits {
		key, _ := r.key()
		raw, _ := r.raw(2)
		v, _ := (&reader{data: raw}).next()
		if key.kind != kindStr || v.kind != kindStr {
			continue
		}
		switch string(key.body) {
		case "uuid":
			book.UUID = string(v.body)
		case "name":
			book.Name = string(v.body)
		}
	}
	return book
}

// EncodeRedis writes a posting as TaskFlow's Redis jobboard does. Details are
// kept as they are if they are msgpack, and translated if they are JSON.
func EncodeRedis(p *Posting) ([]byte, error) {
	head, tail, err := EncodeRedisParts(p)
	if err != nil {
		return nil, err
	}
	created, err := EncodeDatetime(p.CreatedAt)
	if err != nil {
		return nil, err
	}
	var sequence bytes.Buffer
	_ = msgpack.NewEncoder(&sequence).EncodeUint(p.Sequence) // a bytes.Buffer takes everything
	return bytes.Join([][]byte{head, created, tail, sequence.Bytes()}, nil), nil
}

// EncodeRedisParts writes a posting without its time and its sequence number,
// for a script that knows them only within the store: the posting is head, a
// datetime (EncodeDatetime), tail, and the number as msgpack.
func EncodeRedisParts(p *Posting) (head, tail []byte, err error) {
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	details, err := p.msgpackDetails()
	if err != nil {
		return nil, nil, err
	}
	var front, back bytes.Buffer
	e := msgpack.NewEncoder(&front)
	_ = e.EncodeMapLen(6 + count(p.Book != job.Book{}) + count(p.Extra != nil)) // and so on: a bytes.Buffer takes everything
	for _, text := range [...]string{"uuid", p.ID.String(), "name", p.Name, "priority", p.Priority.String(), "created_on"} {
		_ = e.EncodeString(text)
	}
	e = msgpack.NewEncoder(&back)
	_ = e.EncodeString("details")
	back.Write(details)
	if p.Book != (job.Book{}) {
		_ = e.EncodeString("book")
		_ = e.EncodeMapLen(2)
		for _, text := range [...]string{"name", p.Book.Name, "uuid", p.Book.UUID} {
			_ = e.EncodeString(text)
		}
	}
	if p.Extra != nil {
		_ = e.EncodeString(extraKey)
		_ = e.EncodeBytes(p.Extra)
	}
	_ = e.EncodeString("sequence")
	return front.Bytes(), back.Bytes(), nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// msgpackDetails returns the details as msgpack that TaskFlow can read back.
func (p *Posting) msgpackDetails() ([]byte, error) {
	switch {
	case p.Details == nil:
		return []byte{0x80}, nil // {}, as TaskFlow writes it for None
	case p.Encoding == job.JSON:
		return MsgpackOfJSON(p.Details)
	}
	if err := CheckMsgpackDetails(p.Details); err != nil {
		return nil, err
	}
	return p.Details, nil
}

// CheckMsgpackDetails refuses details that are no msgpack map or that TaskFlow
// could not read back: a posting with them would be deleted by whoever lists
// the board next, and its poster would take it for done.
func CheckMsgpackDetails(details []byte) error {
	r := reader{data: details}
	if head, err := r.next(); err != nil || head.kind != kindMap {
		return invalid("details: want a msgpack map")
	}
	r.at = 0
	if _, err := r.walk(1); err != nil {
		return invalid("%v", within("details", err))
	}
	if r.at != len(details) {
		return invalid("details: %d bytes follow the map", len(details)-r.at)
	}
	return nil
}
