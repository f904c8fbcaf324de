package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// boardFlags are the settings of a board.
type boardFlags struct {
	settings boarddv1.BoardSettings
	config   string
	limits   []string

	eligibility []string
	ordering    string

	allowNoExpiry, hideDetails bool
	maxAttempts                int32

	flags *pflag.FlagSet

	lease, maxLease, window, history, record, backoff, maxBackoff duration
}

func (f *boardFlags) add(c *cobra.Command) {
	flags := c.Flags()
	f.flags = flags
	flags.StringVar(&f.settings.Mode, "mode", "", "serve, or observe: write nothing to the store")
	flags.StringVar(&f.settings.Fencing, "fencing", "", "token, or owner: a claim may be named by its owner alone")
	flags.Var(&f.lease, "lease", "lease of a claim that asks for none")
	flags.Var(&f.maxLease, "max-lease", "longest lease of a claim; one that asks for more gets this")
	flags.BoolVar(&f.allowNoExpiry, "allow-no-expiry", false, "allow claims without a lease")
	flags.BoolVar(&f.hideDetails, "hide-details", false, "the web pages show a job's details only to who asks for them")
	flags.Var(&f.window, "idempotency-window", "how long a finished job is remembered")
	flags.Var(&f.history, "history", "how long ended jobs are kept with all that belongs to them (default: not at all)")
	flags.Var(&f.record, "record", "how much of the past is recorded for policy simulate (default: nothing)")
	flags.StringArrayVar(&f.eligibility, "eligibility", nil, "POLICY or POLICY=PARAMS (a JSON object) that says who may have a job; may be repeated")
	flags.StringVar(&f.ordering, "ordering", "", "POLICY or POLICY=PARAMS that says which job comes first")
	flags.Int32Var(&f.maxAttempts, "max-attempts", 0, "claims that may fail before the job goes to the trash")
	flags.Var(&f.backoff, "backoff", "delay before the second attempt; it doubles with each")
	flags.Var(&f.maxBackoff, "max-backoff", "longest delay")
	flags.StringArrayVar(&f.limits, "limit", nil, "NAME=NUMBER, such as open_jobs=1000; may be repeated")
	tenantFlag(c, &f.settings.Tenant)
}

// board returns what the flags say of the board that a command is about.
func (f *boardFlags) board(args []string) (*boarddv1.BoardSettings, error) {
	var err error
	if f.settings.Name, err = one(args, "board"); err != nil {
		return nil, err
	}
	for _, d := range []struct {
		given *duration
		to    **durationpb.Duration
	}{
		{&f.lease, &f.settings.Lease},
		{&f.maxLease, &f.settings.MaxLease},
		{&f.window, &f.settings.IdempotencyWindow},
		{&f.history, &f.settings.History},
		{&f.record, &f.settings.Record},
		{&f.backoff, &f.settings.Backoff},
		{&f.maxBackoff, &f.settings.MaxBackoff},
	} {
		if d.given.set != nil {
			*d.to = durationpb.New(*d.given.set)
		}
	}
	if f.config != "" {
		f.settings.Config = []byte(f.config)
	}
	if f.flags.Changed("allow-no-expiry") {
		f.settings.AllowNoExpiry = &f.allowNoExpiry
	}
	if f.flags.Changed("hide-details") {
		f.settings.HideDetails = &f.hideDetails
	}
	if f.flags.Changed("max-attempts") {
		f.settings.MaxAttempts = &f.maxAttempts
	}
	for _, text := range f.eligibility {
		if text == "" && len(f.eligibility) == 1 {
			break
		}
		r, err := ruleFlag("--eligibility", text)
		if err != nil {
			return nil, err
		}
		f.settings.Eligibility = append(f.settings.Eligibility, r)
	}
	if f.ordering != "" {
		if f.settings.Ordering, err = ruleFlag("--ordering", f.ordering); err != nil {
			return nil, err
		}
	}
	f.settings.Limits, err = limitFlags(f.limits)
	return &f.settings, err
}

// mask names the settings that the flags name: each of these becomes what was
// given, and one that was given as nothing its default.
func (f *boardFlags) mask() *fieldmaskpb.FieldMask {
	m := &fieldmaskpb.FieldMask{}
	fields := f.settings.ProtoReflect().Descriptor().Fields()
	f.flags.Visit(func(flag *pflag.Flag) {
		name := strings.ReplaceAll(flag.Name, "-", "_")
		switch {
		case name == "tenant":
		case name == "limit":
			for limit := range f.settings.GetLimits() {
				m.Paths = append(m.Paths, "limits."+limit)
			}
		case fields.ByName(protoreflect.Name(name)) != nil && name != "version":
			m.Paths = append(m.Paths, name)
		}
	})
	slices.Sort(m.Paths)
	return m
}

// ruleFlag reads POLICY or POLICY=PARAMS.
func ruleFlag(flag, text string) (*boarddv1.PolicyRule, error) {
	name, params, given := strings.Cut(text, "=")
	r := &boarddv1.PolicyRule{Policy: name}
	if !given {
		return r, nil
	}
	var err error
	if r.Params, err = paramFlags(nil, params); err != nil || params == "" {
		return nil, usagef("%s %q: want POLICY, or POLICY= and a JSON object of its parameters", flag, text)
	}
	return r, nil
}

// ruleLine is a policy of a board for people; empty: there is none.
func ruleLine(r *boarddv1.PolicyRule) string {
	parts := []string{r.GetPolicy(), string(r.GetParams()), r.GetOnError()}
	if r.GetPromoted() {
		parts = append(parts, "(promoted)")
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

func (p *program) showBoard(b *boarddv1.BoardSettings) error {
	return p.show(b, func(t *table) {
		t.line("tenant", b.GetTenant())
		t.line("name", b.GetName())
		t.line("backend", b.GetBackend())
		t.line("config", b.GetConfig())
		settingLines(t, b)
		t.line("declared", b.GetDeclared())
		t.line("version", b.GetVersion())
	})
}

// settingLines shows every setting of a board that has an effect.
func settingLines(t *table, b *boarddv1.BoardSettings) {
	span := func(label string, d *durationpb.Duration) {
		if d.AsDuration() > 0 {
			t.line(label, d.AsDuration())
		}
	}
	t.line("mode", b.GetMode())
	t.line("fencing", b.GetFencing())
	span("lease", b.GetLease())
	span("longest lease", b.GetMaxLease())
	t.line("may not expire", b.GetAllowNoExpiry())
	t.line("retry", retryLine(b))
	span("idempotency window", b.GetIdempotencyWindow())
	span("history", b.GetHistory())
	span("record", b.GetRecord())
	for _, r := range b.GetEligibility() {
		t.line("eligibility", ruleLine(r))
	}
	t.line("ordering", ruleLine(b.GetOrdering()))
	t.line("limits", limitLine(b.GetLimits()))
	if b.GetHideDetails() {
		t.line("hide details", true)
	}
}

// retryLine says what becomes of a job whose claim failed.
func retryLine(b *boarddv1.BoardSettings) string {
	when := "at once"
	if first := b.GetBackoff().AsDuration(); first > 0 {
		most := cmp.Or(b.GetMaxBackoff().AsDuration(), job.DefaultMaxBackoff)
		when = "after " + first.String() + ", which doubles up to " + most.String()
	}
	if n := b.GetMaxAttempts(); n > 0 {
		return when + ", " + plural(int(n), "attempt") + " at most"
	}
	return when + ", any number of attempts"
}

// showDifference shows a changed thing: as JSON, or by what differs.
func (p *program) showDifference(m proto.Message, before, after map[string]string) error {
	return p.show(m, func(t *table) {
		difference := changed(before, after)
		for _, field := range difference {
			t.row(field)
		}
		if len(difference) == 0 {
			t.row("nothing was changed: it is so already")
		}
	})
}

func (p *program) boardCreateCommand() *cobra.Command {
	f := &boardFlags{}
	c := p.command("create BOARD --backend BACKEND", "Make a board",
		"It gets a place of its own in the store. Only an operator chooses one with --config.",
		"boardd board create builds --backend main --lease 1m --max-attempts 5",
		func(ctx context.Context, args []string) error {
			settings, err := f.board(args)
			if err != nil {
				return err
			}
			return p.administer(func(a *client.Admin) error {
				made, err := a.CreateBoard(ctx, &boarddv1.CreateBoardRequest{Tenant: settings.GetTenant(), Board: settings})
				if err != nil {
					return err
				}
				return p.showBoard(made.GetBoard())
			})
		})
	c.Flags().StringVar(&f.settings.Backend, "backend", "", "store on which it is kept, see boardd backend list; absent: where most room is left")
	c.Flags().StringVar(&f.config, "config", "", "the board's settings for the driver, a JSON object")
	f.add(c)
	return c
}

func (p *program) boardUpdateCommand() *cobra.Command {
	f := &boardFlags{}
	var version int64
	c := p.command("update BOARD", "Change settings of a board",
		"Only what is given changes, and the difference is printed. An empty --eligibility or --ordering\ntakes the board's away, 0s a duration's effect, and --limit NAME=0 lifts a limit. Calls that go on\nare not disturbed.",
		"boardd board update builds --lease 2m\n  boardd board update builds --ordering '' --limit open_jobs=0",
		func(ctx context.Context, args []string) error {
			settings, err := f.board(args)
			if err != nil {
				return err
			}
			mask := f.mask()
			if len(mask.GetPaths()) == 0 {
				return usagef("what to change? Give at least one setting")
			}
			return p.administer(func(a *client.Admin) error {
				answer, err := a.UpdateBoard(ctx, &boarddv1.UpdateBoardRequest{Tenant: settings.GetTenant(), Board: settings, Version: version, UpdateMask: mask})
				if err != nil {
					return err
				}
				return p.showDifference(answer.GetBoard(), lines(answer.GetBefore()), lines(answer.GetBoard()))
			})
		})
	c.Flags().Int64Var(&version, "version", 0, "change this version only")
	f.add(c)
	return c
}

func (p *program) boardDeleteCommand() *cobra.Command {
	request := &boarddv1.DeleteBoardRequest{}
	c := p.command("delete BOARD", "Serve a board no more",
		"Its jobs are kept for a board that is made again under the name, unless --purge is given.",
		"boardd board delete builds --purge",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "board")
			if err != nil {
				return err
			}
			request.Name = name
			return p.administer(func(a *client.Admin) error {
				answer, err := a.DeleteBoard(ctx, request)
				if err != nil {
					return err
				}
				return p.show(answer, func(t *table) {
					t.line("deleted", name)
					if !request.GetPurge() {
						t.line("its jobs", "stay in the store, for a board that is made under this name, or until boardd board delete "+name+" --purge")
					}
				})
			})
		})
	c.Flags().BoolVar(&request.Purge, "purge", false, "take its jobs away, too; they are gone for good")
	tenantFlag(c, &request.Tenant)
	return c
}
