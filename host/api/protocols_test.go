package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/host/config"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/wirejson"
)

// cleartext2 is a client of HTTP/2 without TLS.
func cleartext2(t testing.TB) *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// bearer adds a token to every call.
type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		r.Header().Set("Authorization", "Bearer "+string(b))
		return next(ctx, r)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", "Bearer "+string(b))
		return conn
	}
}

func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func detailOf(err error) *boarddv1.Error {
	var e *connect.Error
	if !asConnect(err, &e) {
		return nil
	}
	for _, d := range e.Details() {
		if v, err := d.Value(); err == nil {
			if detail, ok := v.(*boarddv1.Error); ok {
				return detail
			}
		}
	}
	return nil
}

func asConnect(err error, e **connect.Error) bool {
	found := connect.CodeOf(err) != connect.CodeUnknown
	if c, ok := err.(*connect.Error); ok { // a client returns it as it is
		*e = c
		return true
	}
	return found && *e != nil
}

func TestEveryProtocol(t *testing.T) {
	t.Parallel()
	s := serve(t)
	two := cleartext2(t)
	json := connect.WithCodec(wirejson.Codec{Lenient: true})
	for _, c := range []struct {
		name    string
		client  *http.Client
		options []connect.ClientOption
	}{
		{"Connect, binary, HTTP/1.1", s.client, nil},
		{"Connect, JSON, HTTP/1.1", s.client, []connect.ClientOption{json}},
		{"Connect, JSON, GET", s.client, []connect.ClientOption{json, connect.WithHTTPGet()}},
		{"Connect, binary, GET", s.client, []connect.ClientOption{connect.WithHTTPGet()}},
		{"Connect, JSON, zipped", s.client, []connect.ClientOption{json, connect.WithSendGzip()}},
		{"Connect, JSON, HTTP/2", two, []connect.ClientOption{json}},
		{"gRPC", two, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC, JSON", two, []connect.ClientOption{connect.WithGRPC(), json}},
		{"gRPC, zipped", two, []connect.ClientOption{connect.WithGRPC(), connect.WithSendGzip()}},
		{"gRPC-Web, HTTP/1.1", s.client, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"gRPC-Web, JSON, HTTP/2", two, []connect.ClientOption{connect.WithGRPCWeb(), json}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			exercise(t, boarddv1connect.NewBoardServiceClient(c.client, s.url, append(c.options, connect.WithInterceptors(bearer(rootSecret)))...))
			nobody := boarddv1connect.NewBoardServiceClient(c.client, s.url, c.options...)
			_, err := nobody.CountJobs(t.Context(), connect.NewRequest(&boarddv1.CountJobsRequest{Board: "other"}))
			if d := detailOf(err); connect.CodeOf(err) != connect.CodeUnauthenticated || d.GetCode() != boarddv1.Code_UNAUTHENTICATED {
				t.Errorf("without a token: %v, detail %v", err, d)
			}
		})
	}
}

// exercise makes one call of each shape on the board "other", on which others
// work at the same time.
func exercise(t *testing.T, client boarddv1connect.BoardServiceClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := client.WatchBoard(ctx, connect.NewRequest(&boarddv1.WatchBoardRequest{Board: "other"}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	const details = `{"a":[1,2.50,"é😀"]}`
	seen := make(chan string, 1000)
	go func() {
		defer close(seen)
		for stream.Receive() {
			seen <- stream.Msg().GetJob().GetUuid()
		}
	}()
	uuid := ""
	for uuid == "" || !receive(t, seen, uuid) { // the stream may begin after the first post
		posted, err := client.PostJobs(ctx, connect.NewRequest(&boarddv1.PostJobsRequest{Board: "other", Jobs: []*boarddv1.NewJob{{
			Name: "a", Details: []byte(details), Labels: map[string]string{"k": "v"},
		}}}))
		if err != nil {
			t.Fatal(err)
		}
		uuid = posted.Msg.GetResults()[0].GetJob().GetUuid()
	}
	got, err := client.GetJobs(ctx, connect.NewRequest(&boarddv1.GetJobsRequest{Board: "other", Uuids: []string{uuid, "x"}}))
	if err != nil {
		t.Fatal(err)
	}
	if j := got.Msg.GetResults()[0].GetJob(); string(j.GetDetails()) != details || j.GetLabels()["k"] != "v" {
		t.Errorf("got %v", got.Msg)
	}
	if e := got.Msg.GetResults()[1].GetError(); e.GetCode() != boarddv1.Code_INVALID {
		t.Errorf("got %v", got.Msg)
	}
	_, err = client.ListJobs(ctx, connect.NewRequest(&boarddv1.ListJobsRequest{Board: "other", PageSize: -3}))
	if d := detailOf(err); connect.CodeOf(err) != connect.CodeInvalidArgument || d.GetCode() != boarddv1.Code_INVALID || d.GetField() != "pageSize" || d.GetRetryable() {
		t.Errorf("a wrong page size: %v, detail %v", err, d)
	}
	refused, err := client.WatchBoard(ctx, connect.NewRequest(&boarddv1.WatchBoardRequest{Board: "nowhere"}))
	if err == nil {
		for refused.Receive() {
			t.Errorf("an event of a board that does not exist: %v", refused.Msg())
		}
		err = refused.Err()
		_ = refused.Close()
	}
	if connect.CodeOf(err) != connect.CodeNotFound || detailOf(err).GetCode() != boarddv1.Code_NOT_FOUND {
		t.Errorf("watching nowhere: %v, detail %v", err, detailOf(err))
	}
	begun, stop := context.WithTimeout(ctx, 10*time.Second) // from five on the server leaves itself a second for the answer
	defer stop()
	claims, err := client.ClaimJobs(begun, connect.NewRequest(&boarddv1.ClaimJobsRequest{
		Board: "other", Owner: "w", Names: []string{"no such name"}, Wait: durationpb.New(time.Hour),
	}))
	if err != nil || len(claims.Msg.GetClaims()) != 0 {
		t.Errorf("a wait up to the deadline: %v, %v", claims, err)
	}
}

// receive reports whether the uuid comes within a second.
func receive(t *testing.T, seen <-chan string, uuid string) bool {
	t.Helper()
	late := time.After(time.Second)
	for {
		select {
		case got, ok := <-seen:
			if !ok {
				t.Fatal("the stream has ended")
			}
			if got == uuid {
				return true
			}
		case <-late:
			return false
		}
	}
}

func TestReflectionAndHealthNeedNoToken(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ready(t)
	two := cleartext2(t)
	stream := grpcreflect.NewClient(two, s.url, connect.WithGRPC()).NewStream(t.Context())
	names, err := stream.ListServices()
	if err != nil || !slices.Contains(names, "boardd.v1.BoardService") {
		t.Errorf("services: %v, %v", names, err)
	}
	files, err := stream.FileContainingSymbol("boardd.v1.BoardService")
	if err != nil || len(files) == 0 {
		t.Errorf("files: %v, %v", files, err)
	}
	if _, err := stream.Close(); err != nil {
		t.Error(err)
	}
	for service, want := range map[string]string{
		"": `{"status":"SERVING_STATUS_SERVING"}`, "boardd.v1.BoardService": `{"status":"SERVING_STATUS_SERVING"}`, "x": "there is no service",
	} {
		r := s.do(t, http.MethodPost, "/grpc.health.v1.Health/Check", "", `{"service":"`+service+`"}`)
		if !strings.Contains(r.body, want) && !strings.Contains(r.body, grpchealth.StatusServing.String()) {
			t.Errorf("health of %q: %d %s", service, r.status, r.body)
		}
	}
}

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return cert, key, roots
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, roots := certificate(t)
	c := settings()
	c.TLS = &config.TLS{CertFile: cert, KeyFile: key}
	s := serveWith(t, c, quiet())
	url := strings.Replace(s.url, "http:", "https:", 1)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	exercise(t, boarddv1connect.NewBoardServiceClient(client, url, connect.WithGRPC(), connect.WithInterceptors(bearer(rootSecret))))
	get := func(client *http.Client, url string) (int, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode, nil
	}
	if status, err := get(client, url); err != nil || status != http.StatusOK {
		t.Errorf("with TLS: %d, %v", status, err)
	}
	old := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}
	t.Cleanup(old.CloseIdleConnections)
	if status, err := get(&http.Client{Transport: old}, url); err == nil {
		t.Errorf("TLS 1.1 was taken: %d", status)
	}
	if status, err := get(s.client, s.url); err == nil && status == http.StatusOK {
		t.Error("plain text was taken where TLS is demanded")
	}
}

// TestAnswersHaveALength: a large answer comes in one piece, so that its end is no
// packet of its own.
func TestAnswersHaveALength(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post(t, s, slices.Repeat([]string{"a-job"}, 200)...)
	r := s.do(t, http.MethodPost, "/boardd.v1.BoardService/ListJobs", workerSecret, `{"board":"default","pageSize":200}`, "Accept-Encoding", "identity")
	if got := r.header.Get("Content-Length"); len(r.body) < 20_000 || got != strconv.Itoa(len(r.body)) {
		t.Errorf("an answer of %d bytes says that it has %q", len(r.body), got)
	}
}

// TestContentTypesInCapitals: a content type means the same in capitals.
func TestContentTypesInCapitals(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := s.do(t, http.MethodPost, "/boardd.v1.BoardService/PostJobs", rootSecret, `{"board":"default","jobs":[{"name":"loud"}]}`, "Content-Type", "Application/JSON")
	if r.status != http.StatusOK || !strings.Contains(r.body, `"loud"`) {
		t.Errorf("PostJobs: %d %s", r.status, r.body)
	}
	r = s.do(t, http.MethodPost, "/boardd.v1.BoardService/ClaimJobs", rootSecret, `{"board":"default","owner":"me"}`, "Content-Type", "APPLICATION/JSON")
	if r.status != http.StatusOK || !strings.Contains(r.body, `"loud"`) {
		t.Errorf("ClaimJobs: %d %s", r.status, r.body)
	}
}

// shouting sends content types in capitals.
type shouting struct{ http.RoundTripper }

func (s shouting) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Content-Type", strings.ToUpper(r.Header.Get("Content-Type")))
	return s.RoundTripper.RoundTrip(r)
}

// TestGRPCInCapitals: gRPC writes an answer in two parts, whatever its content type
// looks like.
func TestGRPCInCapitals(t *testing.T) {
	t.Parallel()
	s := serve(t)
	loud := cleartext2(t)
	loud.Transport = shouting{loud.Transport}
	c := boarddv1connect.NewBoardServiceClient(loud, s.url, connect.WithGRPC(), connect.WithInterceptors(bearer(rootSecret)))
	answer, err := c.PostJobs(t.Context(), connect.NewRequest(&boarddv1.PostJobsRequest{Board: "default", Jobs: []*boarddv1.NewJob{{Name: "loud"}}}))
	if err != nil || answer.Msg.GetResults()[0].GetJob().GetName() != "loud" {
		t.Errorf("got %v, %v", answer, err)
	}
}
