package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/wirejson"
)

// claimsFlags say which claims a command is about.
type claimsFlags struct {
	owner  string
	tokens []string
	file   string
}

func (f *claimsFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.owner, "owner", "", "who claimed the jobs")
	flags.StringSliceVar(&f.tokens, "claim-token", nil, "the claim's token; with several jobs one for each, in their order")
	flags.StringVar(&f.file, "claims", "", "file with what boardd job claim -o json printed; - for standard input")
	c.MarkFlagsMutuallyExclusive("claims", "owner")
	c.MarkFlagsMutuallyExclusive("claims", "claim-token")
}

const claimsText = "The claims are those that boardd job claim -o json printed (--claims), or jobs with the\n" +
	"owner and the token of each."

// claims returns the claims that a command line names.
func (f *claimsFlags) claims(p *program, args []string) ([]*client.Claim, error) {
	if f.file != "" {
		if len(args) > 0 {
			return nil, usagef("--claims names the jobs: no uuids besides it")
		}
		return p.readClaims(f.file)
	}
	if err := uuids(args, true); err != nil {
		return nil, err
	}
	if f.owner == "" && len(f.tokens) == 0 {
		return nil, usagef("which claim? Give --claim-token, or --claims with what boardd job claim -o json printed")
	}
	if len(f.tokens) > 0 && len(f.tokens) != len(args) {
		return nil, usagef("%d jobs and %d tokens: want a --claim-token for each", len(args), len(f.tokens))
	}
	claims := make([]*client.Claim, len(args))
	for i, uuid := range args {
		claims[i] = &client.Claim{Uuid: uuid, Owner: f.owner}
		if len(f.tokens) > 0 {
			claims[i].Token = f.tokens[i]
		}
	}
	return claims, nil
}

// readClaims reads the answers of claim, or single claims, one after the other.
func (p *program) readClaims(path string) ([]*client.Claim, error) {
	source, name := p.in, "standard input"
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, usagef("--claims: %v", err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return nil, usagef("--claims: %s is a folder; want the file with what boardd job claim -o json printed", path)
		}
		source, name = file, path
	}
	claims, err := decodeClaims(source)
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	if len(claims) == 0 {
		return nil, nothing("%s holds no claims", name)
	}
	return claims, nil
}

func decodeClaims(source io.Reader) ([]*client.Claim, error) {
	var claims []*client.Claim
	decoder := json.NewDecoder(source)
	for n := 1; ; n++ {
		var object json.RawMessage
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return claims, nil
		} else if err != nil {
			return nil, fmt.Errorf("object %d: %w", n, err)
		}
		var probe struct{ Claims, Failures *json.RawMessage }
		_ = json.Unmarshal(object, &probe) // what is wrong with it is said below
		answer, claim := &boarddv1.ClaimJobsResponse{}, &client.Claim{}
		var target proto.Message = claim
		if probe.Claims != nil || probe.Failures != nil {
			target = answer
		}
		if err := wirejson.UnmarshalLenient(object, target); err != nil {
			return nil, fmt.Errorf("object %d is neither a claim nor an answer with claims: %w", n, err)
		}
		if target == answer {
			claims = append(claims, answer.GetClaims()...)
			continue
		}
		if _, err := job.ParseID(claim.GetUuid()); err != nil {
			return nil, fmt.Errorf("object %d is not a claim: uuid: %w", n, err)
		}
		claims = append(claims, claim)
	}
}

// ending makes a command that does something with claims. Its answer is made of
// the call's error.
func (p *program) ending(use, short, example string, f *claimsFlags,
	do func(ctx context.Context, b *client.Board, claims []*client.Claim) (proto.Message, func(*table), error),
) *cobra.Command {
	c := p.command(use+" UUID...", short, claimsText, example, func(ctx context.Context, args []string) error {
		claims, err := f.claims(p, args)
		if err != nil {
			return err
		}
		return p.end(ctx, func(ctx context.Context, b *client.Board) (proto.Message, func(*table), error) {
			return do(ctx, b, claims)
		})
	})
	f.add(c)
	return c
}

// end makes a call, shows its answer and returns its error.
func (p *program) end(ctx context.Context, do func(context.Context, *client.Board) (proto.Message, func(*table), error)) error {
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	answer, rows, err := do(ctx, board)
	if !partly(err) {
		return err
	}
	if shown := p.show(answer, rows); shown != nil {
		return shown
	}
	return err
}

// doneRows says what became of each job; the failed ones are said on standard
// error.
func doneRows(what string, names []string, err error) func(*table) {
	return func(t *table) {
		for i, err := range client.Each(err, len(names)) {
			if err == nil {
				t.row(names[i], what)
			}
		}
	}
}

func uuidsOf(claims []*client.Claim) []string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = c.GetUuid()
	}
	return list
}

func (p *program) jobExtendCommand() *cobra.Command {
	var f claimsFlags
	var lease duration
	c := p.ending("extend", "Extend claims", "boardd job extend --claims claims.jsonl --lease 5m", &f,
		func(ctx context.Context, b *client.Board, claims []*client.Claim) (proto.Message, func(*table), error) {
			extensions, err := b.Extend(ctx, lease.value(), claims...)
			answer := &boarddv1.ExtendClaimsResponse{}
			for i, err := range client.Each(err, len(extensions)) {
				result := extensions[i]
				if result == nil {
					result = &client.Extension{Error: message(err)}
				}
				answer.Results = append(answer.Results, result)
			}
			return answer, func(t *table) {
				for i, x := range extensions {
					if x != nil {
						t.row(claims[i].GetUuid(), "extended", x.GetLease().AsDuration())
					}
				}
			}, err
		})
	c.Flags().Var(&lease, "lease", "how long the claims hold from now on (default: as before)")
	return c
}

func (p *program) jobConsumeCommand() *cobra.Command {
	var f claimsFlags
	return p.ending("consume", "End claimed jobs as done",
		"boardd job claim --owner me -o json | boardd job consume --claims -", &f,
		func(ctx context.Context, b *client.Board, claims []*client.Claim) (proto.Message, func(*table), error) {
			err := b.Consume(ctx, claims...)
			return &boarddv1.ConsumeJobsResponse{Results: results(err, len(claims))}, doneRows("consumed", uuidsOf(claims), err), err
		})
}

func (p *program) jobAbandonCommand() *cobra.Command {
	var f claimsFlags
	var o client.AbandonOptions
	var after duration
	c := p.ending("abandon", "Give claimed jobs back to the board",
		"boardd job abandon --claims claims.jsonl --reason 'no printer' --retry-after 5m", &f,
		func(ctx context.Context, b *client.Board, claims []*client.Claim) (proto.Message, func(*table), error) {
			o.RetryAfter = after.set
			err := b.Abandon(ctx, o, claims...)
			return &boarddv1.AbandonJobsResponse{Results: results(err, len(claims))}, doneRows("abandoned", uuidsOf(claims), err), err
		})
	c.Flags().StringVar(&o.Reason, "reason", "", "why, for people")
	c.Flags().Var(&after, "retry-after", "when the jobs may be claimed again (default: the board's back-off)")
	c.Flags().BoolVar(&o.RefundAttempt, "refund-attempt", false, "the claim does not count as an attempt")
	return c
}

func (p *program) jobTrashCommand() *cobra.Command {
	var f claimsFlags
	var reason string
	c := p.command("trash UUID...", "Set jobs aside for a person to look at",
		claimsText+" Without owner and token the jobs must not be claimed.",
		"boardd job trash 5f3b0c5e-8a55-4b3e-9d0e-2f6f4f1c7a11 --reason 'wrong customer'",
		func(ctx context.Context, args []string) error {
			if f.file == "" && f.owner == "" && len(f.tokens) == 0 {
				if err := uuids(args, true); err != nil {
					return err
				}
				return p.end(ctx, func(ctx context.Context, b *client.Board) (proto.Message, func(*table), error) {
					err := b.TrashUnclaimed(ctx, reason, args...)
					return &boarddv1.TrashJobsResponse{Results: results(err, len(args))}, doneRows("trashed", args, err), err
				})
			}
			claims, err := f.claims(p, args)
			if err != nil {
				return err
			}
			return p.end(ctx, func(ctx context.Context, b *client.Board) (proto.Message, func(*table), error) {
				err := b.Trash(ctx, reason, claims...)
				return &boarddv1.TrashJobsResponse{Results: results(err, len(claims))}, doneRows("trashed", uuidsOf(claims), err), err
			})
		})
	f.add(c)
	c.Flags().StringVar(&reason, "reason", "", "why, for people")
	c.ValidArgsFunction = p.completeJobs(0, "UNCLAIMED", "CLAIMED")
	return c
}
