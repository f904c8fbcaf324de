package api

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/sdk/job"
)

// How long a client may take to send the body of a request, and to have read the
// answer to one that does not stream. The longest wait is a minute.
const (
	bodyWithin  = 60 * time.Second
	writeWithin = 150 * time.Second
)

// gate stands before everything that is served: it knows which requests are
// let in, and by whom they are made.
type gate struct {
	host      *host.Host
	logger    *slog.Logger
	metrics   *metrics
	hostnames []string // beside loopback names and the address that was dialed
	origins   *http.CrossOriginProtection
	errors    *connect.ErrorWriter
	draining  atomic.Bool
	refusals  *refusalLog
	seats     admission
	bytes     budget // of requests, in memory
	passed    budget // likewise of those that other servers have passed on
	work      budget // of calls
	peers     *peers // nil: the server is in no fleet

	readWithin time.Duration // for the body of a request
}

// admit is for every request.
func (g *gate) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		id := requestID(r.Header)
		h := w.Header()
		h.Set(requestHeader, id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !g.knows(r) {
			g.refuse(w, r, http.StatusMisdirectedRequest, job.Errorf(job.PermissionDenied,
				"this server does not answer to the name %q: use its address, or add the name to hostnames in its configuration", clip(r.Host)))
			return
		}
		if g.origins.Check(r) != nil {
			g.refuse(w, r, http.StatusForbidden, job.Errorf(job.PermissionDenied,
				"this request comes from a page of another site, which is not allowed"))
			return
		}
		controller := http.NewResponseController(w)
		now := time.Now()
		_ = controller.SetWriteDeadline(now.Add(writeWithin)) // what takes no deadline is not a network
		if r.ContentLength != 0 {
			_ = controller.SetReadDeadline(now.Add(g.readWithin))
			r.Body = &boundedBody{ReadCloser: r.Body, controller: controller, left: bodyLimit(r)}
		}
		ctx := context.WithValue(r.Context(), requestKey{}, &request{id: id, remote: r.RemoteAddr, begun: begun})
		ctx = context.WithValue(ctx, controllerKey{}, controller)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// bodyLimit returns how many bytes of a body are read. A unary request of Connect is cut
// off after the first byte that is too many, so that our codec sees that it is too large.
// The other protocols say in advance how large a message is, and nothing after that is
// needed.
func bodyLimit(r *http.Request) int64 {
	switch base, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(base) {
	case "application/json", "application/proto":
		return MaxRequest + 1
	}
	return hardLimit
}

// boundedBody ends a body after so many bytes. It takes the deadline away when
// the body has come to its own end: on HTTP/1.1 a deadline that passes later
// would look as if the client had gone. After anything else the deadline stays,
// since net/http reads on to see whether the connection can be used again.
type boundedBody struct {
	io.ReadCloser

	controller *http.ResponseController
	left       int64
	over       bool
}

// Read reads the body.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if errors.Is(err, io.EOF) && !b.over {
		b.over = true
		_ = b.controller.SetReadDeadline(time.Time{})
	}
	return n, err
}

// knows reports whether the request names this server as one of its own names,
// so that a page of a stranger whose name points here gets nothing.
func (g *gate) knows(r *http.Request) bool {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || slices.Contains(g.hostnames, name) {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if address.IsLoopback() {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	dialed, err := netip.ParseAddrPort(local.String())
	return err == nil && dialed.Addr().Unmap().WithZone("") == address.Unmap().WithZone("")
}

// authenticate is for the calls that need a token.
func (g *gate) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(peerHeader) != "" {
			g.takePassed(w, r, next)
			return
		}
		if g.draining.Load() {
			g.refuse(w, r, http.StatusServiceUnavailable, errStopping)
			return
		}
		session, err := g.login(r)
		if err != nil {
			g.refuseLogin(w, r, err)
			return
		}
		if of := r.Header.Get(tenantHeader); of != "" {
			if err := session.Visit(of); err != nil {
				g.refuseVisit(w, r, session, err)
				return
			}
		}
		call := path.Base(r.URL.Path)
		if err := session.Check(call); err != nil { // before anything of the body is read
			g.refuseRole(w, r, session, call, err)
			return
		}
		if r.ContentLength > MaxRequest+16 && r.Header.Get("Content-Encoding") == "" {
			g.refuse(w, r, http.StatusBadRequest, job.Errorf(job.Invalid, "%s", tooLarge))
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, session))
		if err := session.Admit(r.Context()); err != nil {
			w.Header().Set("Retry-After", "1")
			g.refuse(w, r, http.StatusTooManyRequests, err)
			return
		}
		g.seated(w, r, session, &portion{budget: &g.bytes, tenant: session.Tenant()}, next)
	})
}

// seated makes a call when there is a seat for it and room for its body, of which portion is
// what it has already. A call that another server has passed on has room of its own as long as it
// goes on here. Had it to wait here until a call is over that this server has passed on to the
// other one, and that call there likewise, both would wait for nothing.
func (g *gate) seated(w http.ResponseWriter, r *http.Request, session *host.Session, portion *portion, next http.Handler) {
	r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, session))
	seat, err := g.seats.admit(r.Context(), session.Tenant())
	if err != nil {
		w.Header().Set("Retry-After", "1")
		g.refuse(w, r, http.StatusServiceUnavailable, err)
		return
	}
	defer seat.leave()
	if err := g.admitBody(r, portion); err != nil {
		w.Header().Set("Retry-After", "1")
		g.refuse(w, r, http.StatusServiceUnavailable, err)
		return
	}
	defer portion.shrink(0)
	ctx, done := g.traced(r)
	defer done()
	ctx = context.WithValue(context.WithValue(ctx, seatKey{}, seat), portionKey{}, portion)
	ctx, release := session.Begin(ctx)
	defer release()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// admitBody lets the body of a request in by its size, as it is read. A message in the
// address is there already, and counts with what is unpacked from it.
func (g *gate) admitBody(r *http.Request, p *portion) error {
	if r.Method == http.MethodPost {
		g.counted(r, p)
		return nil
	}
	if size := roomFor(int64(len(r.URL.RawQuery)), r.URL.Query().Get("compression") != ""); size > MaxUncounted {
		return p.reserve(r.Context(), int(size))
	}
	return nil
}

// traced begins the span of a call, if anybody looks. What is refused before has
// none, so that strangers make no traces.
func (g *gate) traced(r *http.Request) (_ context.Context, done func()) {
	q, ok := r.Context().Value(requestKey{}).(*request)
	if t := g.host.Tracer(); t != nil && ok {
		ctx, span := t.Call(r.Context(), r.Header, strings.TrimPrefix(r.URL.Path, "/"), q.begun, trace.Attribute{Key: "boardd.request", Text: q.id})
		return ctx, func() { span.End(q.code) }
	}
	return r.Context(), func() {}
}

// login returns who makes a request: by the token in its header, or where there
// is none by the certificate of the connection.
func (g *gate) login(r *http.Request) (*host.Session, error) {
	if secret := bearer(r.Header); secret != "" || r.Header.Get("Authorization") != "" || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return g.host.Login(r.Context(), secret)
	}
	return g.host.LoginCertificate(r.Context(), namesIn(r.TLS.VerifiedChains[0][0]))
}

// namesIn returns the names of a certificate's holder. The common name is none:
// nobody checks what stands in it.
func namesIn(c *x509.Certificate) []string {
	var names []string
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	return append(names, c.DNSNames...)
}

// tenantHeader names the tenant whose boards an operator or a token of the role
// support wants to read.
const tenantHeader = "Boardd-Tenant"

// bearer returns the secret of a request, or "".
func bearer(h http.Header) string {
	values := h["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// requestHeader is the header by which a caller may name its request, and in which
// it is told the name.
const requestHeader = "X-Request-Id"

// maxRequestID is the longest name of a request that a caller may choose.
const maxRequestID = 64

// requestID returns the name of a request: its caller's if it has one that is fit
// to be written anywhere, or a new one.
func requestID(h http.Header) string {
	if given := h.Get(requestHeader); fitRequestID(given) {
		return given
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func fitRequestID(s string) bool {
	unfit := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' && r != '.'
	}
	return s != "" && len(s) <= maxRequestID && !strings.ContainsFunc(s, unfit)
}

// isGone reports whether serving ended because it was asked to.
func isGone(err error) bool { return err == nil || errors.Is(err, http.ErrServerClosed) }
