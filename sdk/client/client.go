// Package client calls a boardd server from Go and runs workers on its boards.
//
// A [Client] speaks for one token; a [Board] of it has one typed method for
// each call of boardd.v1.BoardService. A [Worker] is what most programs want: it
// claims jobs, keeps their leases alive, runs a function on each, and reports
// how it ended.
//
// Messages are the ones of package boarddv1, under shorter names here. Every
// error is or wraps a [job.Error], so that errors.Is(err, job.LeaseLost) works
// for whole calls and for single items.
package client

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// Locks. held.mu, gatherer.mu, LogWriter.mu, outage.mu and credentials.mu are each held alone,
// while memory is read or written; the contexts of handlers and calls are canceled under the
// first two. None is held while the server is asked, a file is read, or a function of the
// program that uses this package is called, which may therefore call the package again.

// DefaultAddr is where a boardd listens that was told nothing else.
const DefaultAddr = "http://127.0.0.1:7422"

// These are messages of the API, under the names that a caller uses most.
type (
	// Job is a job as the board shows it.
	Job = boarddv1.Job
	// NewJob is a posting.
	NewJob = boarddv1.NewJob
	// Claim says who holds a job and until when.
	Claim = boarddv1.Claim
	// Extension is what extending a claim gave.
	Extension = boarddv1.ExtendResult
	// Event is one change of a board.
	Event = boarddv1.Event
	// Counts says how many jobs a board has.
	Counts = boarddv1.CountJobsResponse
	// Explanation says why a job is not (yet) claimed.
	Explanation = boarddv1.ExplainJobResponse
	// Unique is a key that one job of a board has at a time.
	Unique = boarddv1.Unique
	// Schedule posts a job again and again.
	Schedule = boarddv1.Schedule
	// Batch says how the jobs stand that were posted with one name.
	Batch = boarddv1.Batch
	// Entity is somebody who works on a board.
	Entity = boarddv1.Entity
	// BoardInfo is a board and its settings.
	BoardInfo = boarddv1.Board
	// NewOperation is an operation of a posting.
	NewOperation = boarddv1.NewOperation
	// Operation is one of the steps that a job is made of.
	Operation = boarddv1.Operation
	// OperationStarted says how an operation stands that was begun.
	OperationStarted = boarddv1.StartOperationResponse
	// OperationFinished says how a job stands of which an operation was finished.
	OperationFinished = boarddv1.FinishOperationResponse
	// OperationsMarked says how a job stands whose unfinished operations were marked.
	OperationsMarked = boarddv1.MarkOperationsResponse
	// LogEntry is an entry of a job's log.
	LogEntry = boarddv1.LogEntry
	// BookRecord is a logbook with its content.
	BookRecord = boarddv1.BookRecord
	// Identity says whom a token speaks for and what it may do.
	Identity = boarddv1.WhoAmIResponse
)

// Config says how to reach a server. The zero value reaches a server on this
// machine without a token.
type Config struct {
	Addr      string // "http://HOST:PORT" or "https://..."; several servers of the same boards, with commas between them; empty: DefaultAddr
	Token     string // sent with every call
	TokenFile string // read for the token where Token is empty, and again when the server refuses it

	// Tenant is whose boards the calls read, where that is not the token's own
	// tenant: an operator's token and one of the role support may name any, and can
	// change nothing there.
	Tenant string

	CAFile   string // PEM certificates to trust instead of the system's
	CertFile string // PEM certificate to present, with KeyFile
	KeyFile  string

	// StayAtAddr has every call go to Addr. Otherwise, where several servers share their
	// boards and say where clients may go straight to each of them (public), calls of a
	// board go there once a server of Addr has said so: with the same certificates, and
	// never with less encryption than to Addr.
	StayAtAddr bool

	// HTTPClient replaces the transport that New would make out of the files above.
	HTTPClient connect.HTTPClient

	// CallTimeout bounds one attempt of a call, beyond the time that the call
	// itself asks the server to wait; 0: 30 s.
	CallTimeout time.Duration

	// RetryFor bounds how long a call is repeated while the server is not
	// reachable; 0: 30 s, negative: a call is tried once. The context's end
	// always ends it.
	RetryFor time.Duration
}

// A Client calls one server with one token, or one of several servers that serve
// the same boards: the first one of its addresses, and when that one does not
// answer the next. It may be used from many goroutines at once.
type Client struct {
	servers     *servers
	rpc         boarddv1connect.BoardServiceClient
	admin       boarddv1connect.AdminServiceClient
	credentials *credentials
	idle        func() // closes idle connections; nil where the transport is the caller's
	callTimeout time.Duration
	retryFor    time.Duration
	gathered    *gathered
	outage      *outage // is told of every try; nil: nobody is
}

// New makes a Client. It reads the files that c names, and connects to nothing.
func New(c Config) (*Client, error) {
	servers, err := newServers(c.Addr, !c.StayAtAddr, c.HTTPClient)
	if err != nil {
		return nil, err
	}
	credentials, err := newCredentials(c.Token, c.TokenFile)
	if err != nil {
		return nil, err
	}
	credentials.tenant = c.Tenant
	client := &Client{
		servers:     servers,
		credentials: credentials,
		callTimeout: orDefault(c.CallTimeout, 30*time.Second),
		retryFor:    orDefault(c.RetryFor, 30*time.Second),
		gathered:    newGathered(),
	}
	servers.usual = client.callTimeout
	if servers.next == nil {
		transport, err := newTransport(c)
		if err != nil {
			return nil, err
		}
		client.idle = transport.CloseIdleConnections
		servers.next = &http.Client{Transport: schemes{wholeRequests{transport}}}
	}
	// Answers are small and the network is near: compressing them costs a third
	// more processor time for each call.
	options := connect.WithClientOptions(connect.WithAcceptCompression("gzip", nil, nil), connect.WithCodec(boarddv1.Binary{}))
	client.rpc = boarddv1connect.NewBoardServiceClient(servers, servers.base(), options)
	client.admin = boarddv1connect.NewAdminServiceClient(servers, servers.base(), options)
	return client, nil
}

// Close closes the connections that no call uses. The Client stays usable.
func (c *Client) Close() {
	if c.idle != nil {
		c.idle()
	}
}

// telling returns a Client with the same connections and token that tells of every try.
func (c *Client) telling(o *outage) *Client {
	told := *c
	told.outage = o
	return &told
}

// note takes note of a try of a call; err is nil where the server answered.
func (c *Client) note(began time.Time, err error) {
	if c.outage != nil {
		c.outage.tried(began, err)
	}
}

// Board returns the board of the given name. Nothing is asked of the server.
func (c *Client) Board(name string) *Board { return &Board{client: c, name: name} }

// Boards lists the boards that the token may see.
func (c *Client) Boards(ctx context.Context) ([]*BoardInfo, error) { return c.boards(ctx, false) }

// BoardsCounted is Boards with the counts of each board, as far as they are known now. No
// board is opened for that.
func (c *Client) BoardsCounted(ctx context.Context) ([]*BoardInfo, error) { return c.boards(ctx, true) }

func (c *Client) boards(ctx context.Context, counts bool) ([]*BoardInfo, error) {
	return whole(pages(func(token string) ([]*BoardInfo, string, error) {
		answer, err := call(ctx, c, "list boards", 0, c.rpc.ListBoards, &boarddv1.ListBoardsRequest{PageSize: pageSize, PageToken: token, Counts: counts})
		return answer.GetBoards(), answer.GetNextPageToken(), err
	}), (*BoardInfo).GetName)
}

// WhoAmI says whom the token speaks for and what it may do.
func (c *Client) WhoAmI(ctx context.Context) (*Identity, error) {
	return call(ctx, c, "who am i", 0, c.rpc.WhoAmI, &boarddv1.WhoAmIRequest{})
}

func orDefault(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}
