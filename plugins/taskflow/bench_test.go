package taskflow_test

import (
	"testing"

	"github.com/boardd/boardd/plugins/taskflow"
)

// BenchmarkDecodeRedis reads the posting of a conductor's job.
func BenchmarkDecodeRedis(b *testing.B) {
	f := load(b, "redis.json").Postings[6]
	value := unhex(b, f.Value)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := taskflow.DecodeRedis(f.Field, value); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodeRedis writes it.
func BenchmarkEncodeRedis(b *testing.B) {
	f := load(b, "redis.json").Postings[6]
	p, err := taskflow.DecodeRedis(f.Field, unhex(b, f.Value))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := taskflow.EncodeRedis(&p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMsgpackOfJSON translates its details, and back.
func BenchmarkMsgpackOfJSON(b *testing.B) {
	details := []byte(`{"flow_uuid":"99999999-8888-7777-6666-555555555555","store":{"x":1,"y":[1,2,3],"z":1.5}}`)
	b.SetBytes(int64(len(details)))
	b.ReportAllocs()
	for b.Loop() {
		packed, err := taskflow.MsgpackOfJSON(details)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := taskflow.JSONOfMsgpack(packed); !ok {
			b.Fatal("JSON does not hold it")
		}
	}
}

// BenchmarkDecodeZooKeeper reads the same posting as JSON.
func BenchmarkDecodeZooKeeper(b *testing.B) {
	value := []byte(load(b, "zookeeper.json").Postings[6].Value)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := taskflow.DecodeZooKeeper(value); err != nil {
			b.Fatal(err)
		}
	}
}
