package api

import (
	"context"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/tenant"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// routes says what is served where.
func (s *Server) routes(h *host.Host, pages Pages) {
	o := &observer{logger: s.logger, metrics: s.registry, host: h, tracer: h.Tracer(), changes: changes(), refusals: s.gate.refusals, work: &s.gate.work}
	var passing *passing // nil: every call is made here
	if s.peers != nil {
		passing = newPassing(h, s.peers, s.stopping)
	}
	o.passing = passing
	s.registry.watch(&o.streams)
	s.registry.registry.MustRegister(&s.gate.seats, &budgets{&s.gate.bytes, &s.gate.passed, &s.gate.work})
	options := connect.WithHandlerOptions(
		codecs(), compression(),
		connect.WithReadMaxBytes(hardLimit),
		connect.WithCompressMinBytes(compressFrom),
		connect.WithInterceptors(o),
	)
	s.mux = http.NewServeMux()
	path, handler := boarddv1connect.NewBoardServiceHandler(&service{host: h, stopping: s.stopping, metrics: s.registry.work, passing: passing}, options)
	s.mux.Handle(path, s.gate.calls(path, boardMethods(), s.gate.authenticate(handler)))
	path, handler = boarddv1connect.NewAdminServiceHandler(&adminService{host: h, stopping: s.stopping, passing: passing}, options)
	s.mux.Handle(path, s.gate.calls(path, adminMethods(), s.gate.authenticate(handler)))

	services := grpcreflect.NewStaticReflector(boarddv1connect.BoardServiceName, boarddv1connect.AdminServiceName)
	s.mux.Handle(grpcreflect.NewHandlerV1(services, compression(), connect.WithReadMaxBytes(1<<20)))
	s.mux.Handle(grpcreflect.NewHandlerV1Alpha(services, compression(), connect.WithReadMaxBytes(1<<20)))
	s.mux.Handle(grpchealth.NewHandler(&checker{host: h}, codecs(), compression(), connect.WithReadMaxBytes(1<<20)))

	if s.peers != nil {
		for _, path := range []string{hasOpenPath, standPath, findPath, rememberPath} {
			s.mux.HandleFunc("POST "+path, s.fleetPage)
		}
	}
	s.page("/healthz", s.healthz)
	s.page("/readyz", s.readyz)
	s.page("/boardd.proto", schema(boarddv1.Schema))
	s.page("/admin.proto", schema(boarddv1.AdminSchema))
	s.page("/metrics", s.metricsPage)
	s.page(profilePath, (&profiles{gate: s.gate}).ServeHTTP)
	if pages == nil {
		s.page("/{$}", s.front)
	} else {
		for _, path := range pages.Paths() {
			s.mux.Handle(path, pages)
		}
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.gate.refuse(w, r, http.StatusNotFound, job.Errorf(job.NotFound,
			"there is nothing at %s; the calls are at /%s/, their description at /boardd.proto", clip(r.URL.Path), boarddv1connect.BoardServiceName))
	})
	s.handler = s.gate.admit(s.mux)
}

// page serves something that is only read.
func (s *Server) page(path string, serve http.HandlerFunc) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			s.gate.refuse(w, r, http.StatusMethodNotAllowed, job.Errorf(job.Unsupported, "%s can only be read: want GET, got %s", r.URL.Path, clip(r.Method)))
			return
		}
		serve(w, r)
	})
}

func boardMethods() protoreflect.MethodDescriptors {
	return boarddv1.File_boardd_v1_boardd_proto.Services().ByName("BoardService").Methods()
}

func adminMethods() protoreflect.MethodDescriptors {
	return boarddv1.File_boardd_v1_admin_proto.Services().ByName("AdminService").Methods()
}

// calls refuses in clear words what Connect would refuse in few: names of calls
// that do not exist, and methods and content types that they do not take.
func (g *gate) calls(prefix string, methods protoreflect.MethodDescriptors, next http.Handler) http.Handler {
	type method struct{ stream, byGet bool } // byGet: GET will do
	byName := map[string]method{}
	for i := range methods.Len() {
		m := methods.Get(i)
		options, _ := m.Options().(*descriptorpb.MethodOptions)
		reads := options.GetIdempotencyLevel() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS
		byName[string(m.Name())] = method{stream: m.IsStreamingServer(), byGet: reads && !m.IsStreamingServer()}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := strings.TrimPrefix(r.URL.Path, prefix)
		m, ok := byName[call]
		if !ok {
			g.refuse(w, r, http.StatusNotFound, job.Errorf(job.Unsupported, "there is no call %q%s", clip(call), callHint(call, methods)))
			return
		}
		if r.Method != http.MethodPost && (r.Method != http.MethodGet || !m.byGet) {
			w.Header().Set("Allow", http.MethodPost)
			g.refuse(w, r, http.StatusMethodNotAllowed, job.Errorf(job.Unsupported, "%s wants POST, got %s", call, clip(r.Method)))
			return
		}
		contentType := r.Header.Get("Content-Type")
		if r.Method == http.MethodPost && !takes(contentType, m.stream) {
			g.refuse(w, r, http.StatusUnsupportedMediaType, job.Errorf(job.Invalid,
				"%s does not take the content type %q: %s", call, clip(contentType), wantedType(m.stream)))
			return
		}
		if r.Method == http.MethodGet {
			if err := wrongQuery(r, call, r.URL.Query()); err != nil {
				g.refuse(w, r, http.StatusBadRequest, err)
				return
			}
		}
		if err := wrongHeaders(r, m.stream); err != nil {
			status := http.StatusBadRequest
			if job.KindOf(err) == job.Unsupported {
				status = http.StatusNotImplemented
			}
			g.refuse(w, r, status, err)
			return
		}
		if base, _ := parseType(contentType); !m.stream && !isGRPC(base) { // gRPC writes an answer in parts
			w = &wholeAnswer{ResponseWriter: w}
		}
		if m.stream {
			r = r.WithContext(context.WithValue(r.Context(), streamKey{}, w))
		}
		next.ServeHTTP(w, r)
	})
}

// A wholeAnswer says how long an answer is that Connect writes at once. Without that
// it would be sent in chunks where it is large, and its end as a packet of its own.
type wholeAnswer struct {
	http.ResponseWriter

	begun bool
}

// WriteHeader begins an answer.
func (w *wholeAnswer) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// Write writes an answer, or what follows where its header was written before.
func (w *wholeAnswer) Write(body []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	return w.ResponseWriter.Write(body)
}

func callHint(call string, methods protoreflect.MethodDescriptors) string {
	if len(call) > 64 {
		return ""
	}
	names := make([]string, methods.Len())
	for i := range names {
		names[i] = string(methods.Get(i).Name())
	}
	return nearest.Hint(call, names)
}

func wantedType(stream bool) string {
	if stream {
		return "as a stream it wants application/connect+json; ListEvents gives the same with application/json"
	}
	return `send the header "Content-Type: application/json"`
}

// takes reports whether Connect has a codec for the content type.
func takes(contentType string, stream bool) bool {
	base, parameter := parseType(contentType)
	if isGRPC(base) {
		return true
	}
	prefix := "application/"
	if stream {
		prefix = "application/connect+"
	}
	if base == prefix+"json" {
		return parameter == "" || strings.ReplaceAll(strings.TrimSpace(parameter), `"`, "") == "charset=utf-8"
	}
	return base == prefix+"proto"
}

// parseType parts a content type, which means the same in capitals, from its
// parameters.
func parseType(contentType string) (base, parameters string) {
	base, parameters, _ = strings.Cut(strings.ToLower(contentType), ";")
	return strings.TrimSpace(base), parameters
}

// isGRPC reports whether a content type is one of gRPC's or gRPC-Web's.
func isGRPC(base string) bool {
	for _, prefix := range []string{"application/grpc", "application/grpc-web"} {
		if base == prefix || base == prefix+"+proto" || base == prefix+"+json" {
			return true
		}
	}
	return false
}

// healthz says that the process is alive.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }

// readyz says whether the server is to be sent callers, and what else there is to say of
// that. The reasons are in the log, once as long as they stay the same.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	status, text, reason := http.StatusOK, "ready\n", ""
	r := s.gate.host.Readiness()
	if r.Err != nil {
		status, text, reason = http.StatusServiceUnavailable, "not ready\n", r.Err.Error()
	}
	if before := s.unready.Swap(&reason); reason != "" && (before == nil || *before != reason) {
		s.logger.Info("not ready", "error", r.Err)
	}
	for _, line := range r.Lines {
		text += line + "\n"
	}
	plain(w, status, text)
}

func schema(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, text) }
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a client that has gone needs no answer
}

// metricsPage serves the metrics to those who may see every tenant's.
func (s *Server) metricsPage(w http.ResponseWriter, r *http.Request) {
	session, err := s.gate.login(r)
	if err != nil {
		s.gate.refuseLogin(w, r, err)
		return
	}
	if err := session.Check(tenant.MetricsCall); err != nil {
		s.gate.refuseCall(w, r, session, err)
		return
	}
	s.registry.handler().ServeHTTP(w, r)
}

// page is all that is served on metrics_listen.
func (m *metrics) page() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.handler())
	return mux
}

var frontPage = template.Must(template.New("front").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>boardd</title>
<h1>boardd {{.Version}}</h1>
<p>This is a jobboard server. Its calls are at <code>/boardd.v1.BoardService/</code>, described in
<a href="/boardd.proto">boardd.proto</a>. Each works with curl:</p>
<pre>curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' -d '{}' \
     {{.Address}}/boardd.v1.BoardService/ListBoards</pre>
</html>
`))

// front names the server and says where the calls are.
func (s *Server) front(w http.ResponseWriter, r *http.Request) {
	address := "http://" + r.Host
	if r.TLS != nil {
		address = "https://" + r.Host
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	_ = frontPage.Execute(w, struct{ Version, Address string }{s.gate.host.Version(), address}) // only the network can fail
}

// checker answers grpc.health.v1 as readyz does.
type checker struct {
	host *host.Host
}

// Check says whether the server, or a service of it, can serve.
func (c *checker) Check(_ context.Context, r *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if !slices.Contains([]string{"", boarddv1connect.BoardServiceName, boarddv1connect.AdminServiceName}, r.Service) {
		return nil, connect.NewError(connect.CodeNotFound, job.Errorf(job.NotFound, "there is no service %q", clip(r.Service)))
	}
	if c.host.Readiness().Err != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil //nolint:nilerr // why it is not ready is told by /readyz
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
