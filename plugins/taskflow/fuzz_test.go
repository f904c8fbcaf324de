package taskflow_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/job"
)

// FuzzDecodeRedis wants that no bytes are too much for the decoder, and that
// what it takes is encoded so that it is read as the same again.
func FuzzDecodeRedis(f *testing.F) {
	for _, fixture := range load(f, "redis.json").Postings {
		f.Add(unhex(f, fixture.Value))
	}
	for _, fixture := range load(f, "redis.json").Unreadable {
		f.Add(unhex(f, fixture.Value))
	}
	f.Add(posting(f, pair{"boardd", []byte("x")}))
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := taskflow.DecodeRedis(field, value)
		if err != nil {
			if job.KindOf(err) != job.Corrupt {
				t.Errorf("the kind of %v", err)
			}
			return
		}
		if p.Details != nil && !bytes.Contains(value, p.Details) {
			t.Errorf("details %x are not part of %x", p.Details, value)
		}
		again, err := taskflow.EncodeRedis(&p)
		if err != nil {
			return // no time, or details that are no map: others may write that, we do not
		}
		back, err := taskflow.DecodeRedis(field, again)
		if err != nil || back.Name != p.Name || back.Priority != p.Priority || back.Sequence != p.Sequence || back.Book != p.Book ||
			p.Details != nil && !bytes.Equal(back.Details, p.Details) || !bytes.Equal(back.Extra, p.Extra) {
			t.Errorf("%+v came back as %+v (%v)", p, back, err)
		}
	})
}

// FuzzDecodeZooKeeper is the same for JSON.
func FuzzDecodeZooKeeper(f *testing.F) {
	for _, fixture := range load(f, "zookeeper.json").Postings {
		f.Add([]byte(fixture.Value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := taskflow.DecodeZooKeeper(value)
		if err != nil {
			if job.KindOf(err) != job.Corrupt {
				t.Errorf("the kind of %v", err)
			}
			return
		}
		again, err := taskflow.EncodeZooKeeper(&p)
		if err != nil {
			return
		}
		back, err := taskflow.DecodeZooKeeper(again)
		if err != nil || back.Name != p.Name || back.Priority != p.Priority || back.Book != p.Book || p.Details != nil && !bytes.Equal(back.Details, p.Details) {
			t.Errorf("%+v came back as %+v (%v)", p, back, err)
		}
	})
}

func FuzzDecodeModified(f *testing.F) {
	f.Add([]byte(load(f, "redis.json").Modified.Value))
	f.Fuzz(func(t *testing.T, blob []byte) {
		at, nonce, ours, err := taskflow.DecodeModified(blob)
		if err != nil || !ours {
			return
		}
		again, err := taskflow.EncodeModified(at, nonce)
		if err != nil {
			t.Fatal(err)
		}
		if back, n, ours, err := taskflow.DecodeModified(again); err != nil || !ours || n != nonce || !back.Equal(at) {
			t.Errorf("%v and %x came back as %v and %x (%v)", at, nonce, back, n, err)
		}
	})
}

func FuzzDecodeLock(f *testing.F) {
	f.Add(load(f, "zookeeper.json").Lock)
	f.Add(`{"owner": "`)
	f.Fuzz(func(t *testing.T, text string) {
		owner, err := taskflow.DecodeLock([]byte(text))
		if err != nil || owner == "" {
			return
		}
		lock, err := taskflow.EncodeLock(owner)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := taskflow.DecodeLock(lock); err != nil || back != owner {
			t.Errorf("%q came back as %q (%v)", owner, back, err)
		}
	})
}

// FuzzMsgpackOfJSON holds the translation against encoding/json: what is taken
// is JSON, comes back as the same JSON, and can be read by TaskFlow.
func FuzzMsgpackOfJSON(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":[1,-1,1.5,1e-7,"\u00e9\ud83d\ude00",null,true,{"b":{}}]}`, `{"a":18446744073709551615}`, `{"a":1e400}`, `{"a":1,"a":2}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		packed, err := taskflow.MsgpackOfJSON([]byte(text))
		if err != nil {
			if job.KindOf(err) != job.Invalid {
				t.Errorf("the kind of %v", err)
			}
			return
		}
		if err := taskflow.CheckMsgpackDetails(packed); err != nil {
			t.Fatalf("%s became %x: %v", text, packed, err)
		}
		back, ok := taskflow.JSONOfMsgpack(packed)
		if !ok || !json.Valid(back) || !json.Valid([]byte(text)) {
			t.Fatalf("%s came back as %s (%v)", text, back, ok)
		}
		again, err := taskflow.MsgpackOfJSON(back)
		if err != nil || !bytes.Equal(again, packed) && !strings.Contains(string(back), "0.0") { // -0.0 and 0 may differ in their sign only
			t.Errorf("%s became %x, and that %s, and that %x (%v)", text, packed, back, again, err)
		}
	})
}
