package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/job"
)

// maxReadiness is how much of an answer to GET /readyz is read, in bytes.
const maxReadiness = 64 << 10

// Readiness is what a server says of itself at /readyz.
type Readiness struct {
	Ready bool     `json:"ready"` // callers may be sent to it
	Lines []string `json:"lines"` // "ready" or "not ready", and what else there is to say
}

// Ready asks the server whether callers may be sent to it. It needs no token, and asks
// once: an error says that there was no answer to be had.
func (c *Client) Ready(ctx context.Context) (*Readiness, error) {
	const op = "ready"
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.servers.base()+"/readyz", http.NoBody)
	if err != nil {
		return nil, &job.Error{Op: op, Kind: job.Invalid, Err: err}
	}
	answer, err := c.servers.Do(request)
	if err != nil {
		return nil, callError(op, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxReadiness))
	if err != nil {
		return nil, callError(op, err)
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusServiceUnavailable:
		lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
		return &Readiness{Ready: answer.StatusCode == http.StatusOK, Lines: lines}, nil
	}
	var refusal struct{ Code, Message string }
	if json.Unmarshal(text, &refusal) == nil && refusal.Code == connect.CodePermissionDenied.String() && refusal.Message != "" {
		return nil, &job.Error{Op: op, Kind: job.PermissionDenied, Message: refusal.Message}
	}
	return nil, &job.Error{Op: op, Kind: job.Internal, Message: "/readyz is answered with " + answer.Status + ": is that a boardd?"}
}
