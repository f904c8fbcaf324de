package seeded

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// wire is a connection that loses requests and answers now and then, and on which a bug
// may change both.
type wire struct {
	next  connect.HTTPClient
	hooks map[string]hook
	lossy bool

	mu     sync.Mutex
	random *rand.Rand
}

// hook is what is wrong with a call. It is given the request, and send makes the call.
type hook func(request []byte, send func([]byte) ([]byte, error)) ([]byte, error)

// refusal is an answer that is an error.
type refusal struct{ answer *http.Response }

func (*refusal) Error() string { return "the call was refused" }

// Do makes a call.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	name := path.Base(r.URL.Path)
	if name == "WatchBoard" {
		return w.next.Do(r)
	}
	before, after := w.roll(), w.roll()
	if before {
		return nil, io.ErrUnexpectedEOF
	}
	answer, err := w.call(name, r)
	if err == nil && after {
		answer.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	return answer, err
}

// roll says whether something is lost.
func (w *wire) roll() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lossy && w.random.IntN(25) == 0
}

func (w *wire) call(name string, r *http.Request) (*http.Response, error) {
	h, wrong := w.hooks[name]
	if !wrong {
		return w.next.Do(r)
	}
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var head http.Header
	body, err := h(request, func(request []byte) ([]byte, error) {
		again := r.Clone(r.Context())
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(request)), int64(len(request))
		answer, err := w.next.Do(again)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode != http.StatusOK {
			return nil, &refusal{answer}
		}
		defer answer.Body.Close()
		head = answer.Header
		return io.ReadAll(answer.Body)
	})
	if refused, ok := err.(*refusal); ok { //nolint:errorlint // the hook passes it on as it is
		return refused.answer, nil
	}
	if err != nil {
		return nil, err
	}
	if head = head.Clone(); head == nil {
		head = http.Header{"Content-Type": {"application/proto"}}
	}
	head.Del("Content-Length")
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: head, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// message is a message of the type T.
type message[T any] interface {
	*T
	proto.Message
}

// typed makes a hook of one that sees messages.
func typed[Q, A any, PQ message[Q], PA message[A]](wrong func(q PQ, send func(PQ) (PA, error)) (PA, error)) hook {
	return func(request []byte, send func([]byte) ([]byte, error)) ([]byte, error) {
		q := PQ(new(Q))
		if err := proto.Unmarshal(request, q); err != nil {
			return nil, err
		}
		answer, err := wrong(q, func(q PQ) (PA, error) {
			request, err := proto.Marshal(q)
			if err != nil {
				return nil, err
			}
			body, err := send(request)
			if err != nil {
				return nil, err
			}
			a := PA(new(A))
			return a, proto.Unmarshal(body, a)
		})
		if err != nil {
			return nil, err
		}
		return proto.Marshal(answer)
	}
}

// answered makes a hook of what goes wrong with an answer.
func answered[Q, A any, PQ message[Q], PA message[A]](wrong func(q PQ, a PA)) hook {
	return typed(func(q PQ, send func(PQ) (PA, error)) (PA, error) {
		a, err := send(q)
		if err == nil {
			wrong(q, a)
		}
		return a, err
	})
}

// asked makes a hook of what goes wrong with a request.
func asked[Q, A any, PQ message[Q], PA message[A]](wrong func(q PQ)) hook {
	return typed(func(q PQ, send func(PQ) (PA, error)) (PA, error) {
		wrong(q)
		return send(q)
	})
}
