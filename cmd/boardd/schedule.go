package main

import (
	"context"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) scheduleCommand() *cobra.Command {
	about := []*cobra.Command{
		p.schedulePutCommand(), p.scheduleGetCommand(), p.scheduleDeleteCommand(), p.schedulePauseCommand(), p.scheduleResumeCommand(), p.scheduleTriggerCommand(),
	}
	for _, c := range about {
		c.ValidArgsFunction = p.completeSchedules()
	}
	return p.group("schedule", "Jobs that are posted again and again",
		"A schedule posts its job at each tick, by cron or every so often. Each tick is posted once,\n"+
			"however many servers the board has, and none twice.",
		append(about, p.scheduleListCommand())...)
}

// scheduleFlags are the flags of schedule put.
type scheduleFlags struct {
	cron, timezone, overlap string
	every, catchUp, jitter  duration
	paused                  bool
	version                 int64
}

func (p *program) schedulePutCommand() *cobra.Command {
	f := &scheduleFlags{}
	var c *cobra.Command
	c = p.command("put NAME (--cron FIELDS | --every DURATION) [flags] -- JOBNAME [flags of job post]", "Write a schedule",
		"What stands behind -- says what is posted, as job post takes it. A cron expression has five\n"+
			"fields (minute, hour, day of the month, month, day of the week), six with seconds first, or is\n"+
			"a name such as @daily. Where a time zone changes its clocks, one that names hours ticks once\n"+
			"on each day. A tick that is later than --catch-up is left out, and the log says so.",
		`boardd schedule put nightly --cron "0 3 * * *" --timezone Europe/Berlin -- report --label customer=acme`+"\n"+
			"  boardd schedule put poll --every 30s --overlap skip -- poll --timeout 1m",
		func(ctx context.Context, args []string) error { return p.putSchedule(ctx, f, c, args) })
	flags := c.Flags()
	flags.StringVar(&f.cron, "cron", "", "when: fields of cron, or a name such as @daily")
	flags.Var(&f.every, "every", "how often, at least 1s")
	flags.StringVar(&f.timezone, "timezone", "", "of --cron, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.overlap, "overlap", "", "while the job of the tick before is open: ALLOW, SKIP or CANCEL that one (default ALLOW)")
	flags.Var(&f.catchUp, "catch-up", "how late a tick may be posted (default 10m)")
	flags.Var(&f.jitter, "jitter", "each tick is late by so much at most (default 0s)")
	flags.BoolVar(&f.paused, "paused", false, "write it, and let it wait for schedule resume")
	flags.Int64Var(&f.version, "version", 0, "only if it has this version; 0: only if it is new (default: whatever stands)")
	c.MarkFlagsMutuallyExclusive("cron", "every")
	c.MarkFlagsOneRequired("cron", "every")
	return c
}

func (p *program) putSchedule(ctx context.Context, f *scheduleFlags, c *cobra.Command, args []string) error {
	if c.ArgsLenAtDash() != 1 || len(args) < 2 {
		return usagef("want one NAME, and behind -- the job's name and flags, as in: schedule put nightly --cron @daily -- report")
	}
	posting, err := p.behindDashes(args[1:])
	if err != nil {
		return err
	}
	s := &client.Schedule{
		Name: args[0], Cron: f.cron, Every: f.every.proto(), Timezone: f.timezone, Job: posting,
		CatchUp: f.catchUp.proto(), Jitter: f.jitter.proto(), Paused: f.paused,
	}
	if f.overlap != "" {
		n, err := enum("--overlap", f.overlap, boarddv1.Overlap_Enum_value, "")
		if err != nil {
			return err
		}
		s.Overlap = boarddv1.Overlap_Enum(n)
	}
	var version *int64
	if c.Flags().Changed("version") {
		version = &f.version
	}
	return p.aboutBoard(nil, func(b *client.Board) error {
		put, err := b.PutSchedule(ctx, s, version)
		if err != nil {
			return err
		}
		return p.show(&boarddv1.PutScheduleResponse{Schedule: put}, scheduleRows([]*client.Schedule{put}))
	})
}

func scheduleRows(list []*client.Schedule) func(*table) {
	return func(t *table) {
		t.row("NAME", "WHEN", "JOB", "OVERLAP", "NEXT", "LAST", "LAST JOB", "PROBLEM")
		for _, s := range list {
			next := any(s.GetNextAt())
			if s.GetPaused() {
				next = "paused"
			}
			t.row(s.GetName(), whenOf(s), s.GetJob().GetName(), s.GetOverlap(), next, s.GetLastAt(), s.GetLastUuid(), clipped(s.GetProblem()))
		}
	}
}

// whenOf is what a schedule ticks by.
func whenOf(s *client.Schedule) string {
	if s.Every != nil {
		return "every " + s.GetEvery().AsDuration().String()
	}
	if s.GetTimezone() != "" {
		return s.GetCron() + " " + s.GetTimezone()
	}
	return s.GetCron()
}

func (p *program) scheduleListCommand() *cobra.Command {
	return p.command("list", "List the schedules of a board", "", "boardd schedule list",
		func(ctx context.Context, args []string) error {
			if err := none(args); err != nil {
				return err
			}
			return p.aboutBoard(nil, func(b *client.Board) error {
				var list []*client.Schedule
				for s, err := range b.Schedules(ctx) {
					if err != nil {
						return err
					}
					list = append(list, s)
				}
				return p.show(&boarddv1.ListSchedulesResponse{Schedules: list}, scheduleRows(list))
			})
		})
}

// oneNamed is a command about one thing of a board that has a name.
func (p *program) oneNamed(use, short, long, example string, do func(context.Context, *client.Board, string) error) *cobra.Command {
	return p.command(use, short, long, example, func(ctx context.Context, args []string) error {
		if len(args) != 1 {
			return usagef("want one NAME, got %d", len(args))
		}
		return p.aboutBoard(nil, func(b *client.Board) error { return p.missing(do(ctx, b, args[0])) })
	})
}

func (p *program) scheduleGetCommand() *cobra.Command {
	return p.oneNamed("get NAME", "Show a schedule", "", "boardd schedule get nightly -o json",
		func(ctx context.Context, b *client.Board, name string) error {
			s, err := b.Schedule(ctx, name)
			if err != nil {
				return err
			}
			return p.show(&boarddv1.GetScheduleResponse{Schedule: s}, scheduleRows([]*client.Schedule{s}))
		})
}

func (p *program) scheduleDeleteCommand() *cobra.Command {
	return p.oneNamed("delete NAME", "Delete a schedule", "Jobs that it posted stand.", "boardd schedule delete nightly",
		func(ctx context.Context, b *client.Board, name string) error {
			if err := b.DeleteSchedule(ctx, name); err != nil {
				return err
			}
			return p.show(&boarddv1.DeleteScheduleResponse{}, func(t *table) { t.row(name, "deleted") })
		})
}

func (p *program) schedulePauseCommand() *cobra.Command {
	return p.oneNamed("pause NAME", "Stop a schedule until it is resumed", "What would have been due meanwhile is left out.", "boardd schedule pause nightly",
		func(ctx context.Context, b *client.Board, name string) error {
			s, err := b.PauseSchedule(ctx, name)
			if err != nil {
				return err
			}
			return p.show(&boarddv1.PauseScheduleResponse{Schedule: s}, scheduleRows([]*client.Schedule{s}))
		})
}

func (p *program) scheduleResumeCommand() *cobra.Command {
	return p.oneNamed("resume NAME", "Let a schedule go on", "", "boardd schedule resume nightly",
		func(ctx context.Context, b *client.Board, name string) error {
			s, err := b.ResumeSchedule(ctx, name)
			if err != nil {
				return err
			}
			return p.show(&boarddv1.ResumeScheduleResponse{Schedule: s}, scheduleRows([]*client.Schedule{s}))
		})
}

func (p *program) scheduleTriggerCommand() *cobra.Command {
	given := ""
	c := p.oneNamed("trigger NAME", "Post a schedule's job now", "Its next tick comes when it would have.", "boardd schedule trigger nightly",
		func(ctx context.Context, b *client.Board, name string) error {
			uuid := given
			if uuid == "" {
				uuid = client.NewUUID()
			} else if err := uuids([]string{uuid}, true); err != nil {
				return err
			}
			j, err := b.TriggerScheduleAs(ctx, name, uuid)
			if err != nil {
				return p.inDoubt(err, uuid)
			}
			return p.show(&boarddv1.TriggerScheduleResponse{Job: j}, jobRows([]*client.Job{j}))
		})
	c.Flags().Var((*named)(&given), "uuid", "the job's uuid; triggering with it again adds nothing (default: a new one)")
	return c
}
