package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) webhookCommand() *cobra.Command {
	return p.group("webhook", "Addresses that are told of a board",
		"A webhook is told when jobs of its board end, go to the trash or run out of attempts, and when\n"+
			"the oldest waits for too long. Each delivery is a job on another board, that of the deliveries.",
		p.webhookPutCommand(), p.webhookListCommand(), p.webhookGetCommand(), p.webhookPauseCommand(), p.webhookResumeCommand(),
		p.webhookDeleteCommand(), p.webhookTestCommand())
}

// webhookFlags are the flags of webhook put.
type webhookFlags struct {
	request         boarddv1.PutWebhookRequest
	events          []string
	oldest, timeout duration
	secrets         string
	version         int64
}

func (p *program) webhookPutCommand() *cobra.Command {
	f := &webhookFlags{}
	var c *cobra.Command
	c = p.command("put NAME --url URL --deliveries BOARD [flags]", "Write a webhook",
		"Requests are signed with the secret of --secret-file. Without one a webhook that is new gets a\n"+
			"secret, which is printed this once, and one that stands keeps its own. Of what it is told the\n"+
			"flags say; all else is as they say, too. The board of the deliveries has nothing else on it.",
		"boardd webhook put notify --url https://hooks.example.com/builds --deliveries deliveries --board builds\n"+
			"  boardd webhook put late --url https://hooks.example.com/late --deliveries deliveries --oldest-waiting 10m",
		func(ctx context.Context, args []string) error {
			name, err := one(args, "webhook")
			if err != nil {
				return err
			}
			if c.Flags().Changed("version") {
				f.request.Version = &f.version
			}
			return p.putWebhook(ctx, f, name)
		})
	flags := c.Flags()
	flags.StringVar(&f.request.Url, "url", "", "the address, of the internet and by https")
	flags.StringVar(&f.request.Deliveries, "deliveries", "", "the board on which each delivery is a job")
	flags.StringArrayVar(&f.events, "event", nil, "ENDED, TRASHED or EXHAUSTED; may be repeated (default: all, or with --oldest-waiting only that)")
	flags.Var(&f.oldest, "oldest-waiting", "tell when the oldest job waits for so long (default: never)")
	flags.Var(&f.timeout, "timeout", "of a request (default 15s)")
	flags.StringArrayVar(&f.request.Networks, "network", nil, "of the server's own that it may reach, such as 10.1.0.0/16; for operators; may be repeated")
	flags.StringVar(&f.secrets, "secret-file", "", "a file with one secret or several, each of which signs (default: those that it has, or a new one)")
	flags.BoolVar(&f.request.NewSecret, "new-secret", false, "make a secret, beside which the newest that it has goes on to sign")
	flags.BoolVar(&f.request.Paused, "paused", false, "write it, and let its deliveries wait for webhook resume")
	flags.Int64Var(&f.version, "version", 0, "only if it has this version; 0: only if it is new (default: whatever stands)")
	c.MarkFlagsMutuallyExclusive("secret-file", "new-secret")
	_ = c.RegisterFlagCompletionFunc("deliveries", p.completeBoards()) // it fails only for a flag that is not there
	_ = c.RegisterFlagCompletionFunc("event", cobra.FixedCompletions(slices.Sorted(maps.Keys(boarddv1.WebhookEvent_Enum_value)), cobra.ShellCompDirectiveNoFileComp))
	_ = c.MarkFlagRequired("url")        // it fails only for a flag that is not there
	_ = c.MarkFlagRequired("deliveries") // likewise
	tenantFlag(c, &f.request.Tenant)
	c.ValidArgsFunction = p.completeWebhooks(&f.request.Tenant)
	return c
}

func (p *program) putWebhook(ctx context.Context, f *webhookFlags, name string) error {
	r := &f.request
	r.Board, r.Name, r.OldestWaiting, r.Timeout = p.board, name, f.oldest.proto(), f.timeout.proto()
	for _, given := range f.events {
		n, err := enum("--event", given, boarddv1.WebhookEvent_Enum_value, "")
		if err != nil {
			return err
		}
		r.Events = append(r.Events, boarddv1.WebhookEvent_Enum(n))
	}
	if f.secrets != "" {
		text, err := os.ReadFile(f.secrets)
		if err != nil {
			return usagef("--secret-file: %v", err)
		}
		if r.Secrets = strings.Fields(string(text)); len(r.Secrets) == 0 {
			return usagef("--secret-file: %s is empty", f.secrets)
		}
	}
	return p.administer(func(a *client.Admin) error {
		put, err := a.PutWebhook(ctx, r)
		if err != nil {
			return err
		}
		return p.show(put, func(t *table) {
			webhookRows([]*boarddv1.Webhook{put.GetWebhook()})(t)
			if put.GetSecret() != "" {
				t.row()
				t.row("secret:", put.GetSecret())
			}
		})
	})
}

func webhookRows(list []*boarddv1.Webhook) func(*table) {
	return func(t *table) {
		t.row("NAME", "URL", "EVENTS", "DELIVERIES", "STATE", "WAITING", "GIVEN UP", "LAST", "OUTCOME", "REASON")
		for _, w := range list {
			reason := w.GetLast().GetReason()
			if w.GetProblem() != "" {
				reason = w.GetProblem()
			}
			t.row(w.GetName(), w.GetUrl(), strings.Join(eventsOf(w), ","), w.GetDeliveries(), hookState(w), known(w.Waiting), known(w.GivenUp),
				w.GetLast().GetAt(), w.GetLast().GetOutcome(), clipped(reason))
		}
	}
}

// hookState says how a webhook is in a word or two.
func hookState(w *boarddv1.Webhook) string {
	state := "well"
	switch {
	case w.GetPaused():
		state = "paused"
	case w.FailingSince != nil:
		state = "failing"
	case w.GetLast() == nil:
		state = "new"
	}
	if w.GetDeclared() {
		state += ", declared"
	}
	return state
}

// known is a number that may be not known.
func known(n *int64) any {
	if n == nil {
		return ""
	}
	return *n
}

// eventsOf is of what a webhook is told.
func eventsOf(w *boarddv1.Webhook) (list []string) {
	for _, e := range w.GetEvents() {
		list = append(list, e.String())
	}
	if w.OldestWaiting != nil {
		list = append(list, "waiting "+w.GetOldestWaiting().AsDuration().String())
	}
	return list
}

func (p *program) webhookListCommand() *cobra.Command {
	r := &boarddv1.ListWebhooksRequest{}
	c := p.command("list", "List the webhooks of a board", "What came of the last try is up to 5 s late. Secrets are not shown.", "boardd webhook list --board builds",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			r.Board = p.board
			return p.administer(func(a *client.Admin) error {
				list, err := a.ListWebhooks(ctx, r)
				if err != nil {
					return err
				}
				return p.show(&boarddv1.ListWebhooksResponse{Webhooks: list}, webhookRows(list))
			})
		})
	tenantFlag(c, &r.Tenant)
	return c
}

// hookNamed is a command about one webhook.
func (p *program) hookNamed(use, short, long, example string, do func(ctx context.Context, a *client.Admin, tenant, name string) error) *cobra.Command {
	var tenant string
	c := p.command(use, short, long, example, func(ctx context.Context, args []string) error {
		name, err := one(args, "webhook")
		if err != nil {
			return err
		}
		return p.administer(func(a *client.Admin) error { return p.missing(do(ctx, a, tenant, name)) })
	})
	tenantFlag(c, &tenant)
	c.ValidArgsFunction = p.completeWebhooks(&tenant)
	return c
}

func (p *program) webhookGetCommand() *cobra.Command {
	return p.hookNamed("get NAME", "Show a webhook", "", "boardd webhook get notify --board builds -o json",
		func(ctx context.Context, a *client.Admin, tenant, name string) error {
			w, err := a.GetWebhook(ctx, &boarddv1.GetWebhookRequest{Tenant: tenant, Board: p.board, Name: name})
			if err != nil {
				return err
			}
			return p.show(&boarddv1.GetWebhookResponse{Webhook: w}, webhookRows([]*boarddv1.Webhook{w}))
		})
}

func (p *program) webhookPauseCommand() *cobra.Command {
	return p.hookNamed("pause NAME", "Let the deliveries of a webhook wait", "What happens goes on to be told: it waits on the board of the deliveries, and is sent in order\n"+
		"after webhook resume.", "boardd webhook pause notify --board builds",
		func(ctx context.Context, a *client.Admin, tenant, name string) error {
			w, err := a.PauseWebhook(ctx, &boarddv1.PauseWebhookRequest{Tenant: tenant, Board: p.board, Name: name})
			if err != nil {
				return err
			}
			return p.show(&boarddv1.PauseWebhookResponse{Webhook: w}, webhookRows([]*boarddv1.Webhook{w}))
		})
}

func (p *program) webhookResumeCommand() *cobra.Command {
	return p.hookNamed("resume NAME", "Let the deliveries of a webhook go on", "", "boardd webhook resume notify --board builds",
		func(ctx context.Context, a *client.Admin, tenant, name string) error {
			w, err := a.ResumeWebhook(ctx, &boarddv1.ResumeWebhookRequest{Tenant: tenant, Board: p.board, Name: name})
			if err != nil {
				return err
			}
			return p.show(&boarddv1.ResumeWebhookResponse{Webhook: w}, webhookRows([]*boarddv1.Webhook{w}))
		})
}

func (p *program) webhookDeleteCommand() *cobra.Command {
	c := p.hookNamed("delete NAME", "Delete a webhook", "What was not delivered yet stays on the board of the deliveries, and nobody sends it.", "boardd webhook delete notify --board builds",
		func(ctx context.Context, a *client.Admin, tenant, name string) error {
			answer, err := a.DeleteWebhook(ctx, &boarddv1.DeleteWebhookRequest{Tenant: tenant, Board: p.board, Name: name})
			if err != nil {
				return err
			}
			return p.show(answer, func(t *table) { t.row(name, "deleted") })
		})
	c.Aliases = []string{"rm"}
	return c
}

func (p *program) webhookTestCommand() *cobra.Command {
	r := &boarddv1.TestWebhookRequest{}
	timeout := duration{}
	c := p.command("test NAME", "See whether what a webhook tells arrives",
		"It has a request of the type webhook.trial be sent, once, and waits for what comes of it: it ends\n"+
			"with 0 when that was delivered, with 1 when it was not, and with 4 when --timeout ran out before.",
		"boardd webhook test notify --board builds",
		func(ctx context.Context, args []string) (err error) {
			if r.Name, err = one(args, "webhook"); err != nil {
				return err
			}
			r.Board = p.board
			return p.testWebhook(ctx, r, &timeout)
		})
	c.Flags().Var(&timeout, "timeout", "how long to wait (default: for ever)")
	tenantFlag(c, &r.Tenant)
	c.ValidArgsFunction = p.completeWebhooks(&r.Tenant)
	return c
}

func (p *program) testWebhook(ctx context.Context, r *boarddv1.TestWebhookRequest, timeout *duration) error {
	c, err := p.connect(impatient)
	if err != nil {
		return err
	}
	defer c.Close()
	posted, err := c.Admin().TestWebhook(ctx, r)
	if err != nil {
		return p.missing(err)
	}
	var job *client.Job
	ended, err := waitFor(ctx, timeout, func(wait time.Duration) (bool, error) {
		jobs, err := c.Board(posted.GetDeliveries()).Get(ctx, client.GetOptions{Wait: wait}, posted.GetUuid())
		if len(jobs) == 1 {
			job = jobs[0]
		}
		return len(jobs) == 1 && allEnded(jobs), err
	})
	if err != nil {
		return err
	}
	w, err := c.Admin().GetWebhook(ctx, &boarddv1.GetWebhookRequest{Tenant: r.GetTenant(), Board: r.GetBoard(), Name: r.GetName()})
	if err != nil {
		return p.missing(err)
	}
	trial := w.GetTrial()
	if trial.GetUuid() != posted.GetUuid() {
		trial = nil // somebody else tried it since, or it is not known yet
	}
	status := "none"
	if trial.GetStatus() != 0 {
		status = strconv.Itoa(int(trial.GetStatus()))
	}
	if err := p.show(posted, func(t *table) {
		t.row("DELIVERIES", "UUID", "STATE", "STATUS", "TOOK", "REASON", "ANSWER")
		t.row(posted.GetDeliveries(), posted.GetUuid(), job.GetState(), status, trial.GetTook(), clipped(job.GetLastReason()), clipped(trial.GetAnswer()))
	}); err != nil {
		return err
	}
	switch {
	case !ended:
		return nothing("it is not known within %v whether it arrived", timeout.value())
	case job.GetState() == boarddv1.State_COMPLETE && job.GetOutcome() == boarddv1.Outcome_CONSUMED:
		return nil
	}
	return findings("it was not delivered: %s", fmt.Sprint(clipped(job.GetLastReason())))
}
