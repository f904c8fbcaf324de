package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

// postFlags are the flags of job post.
type postFlags struct {
	details     string
	priority    string
	labels      []string
	uuid        string
	notBefore   moment
	maxAttempts int32
	timeout     duration
	operations  []string
	after       []string
	from        string
	asItWas     bool

	batch        string
	uniqueKey    string
	uniqueWindow duration
	onConflict   string
}

func (p *program) jobPostCommand() *cobra.Command {
	f := &postFlags{}
	c := p.command("post NAME | boardd job post --from FILE.jsonl", "Post jobs",
		"Posts one job, or all of a file that has one on each line, as in\n"+
			`  {"name":"resize","details":{"path":"/a.png"},"priority":"HIGH","labels":{"customer":"acme"}}`+"\n\n"+
			"The file is checked first, and nothing is posted if a line is wrong. A line without\n"+
			"a uuid gets one that is made from the file's content and the line's number: posting\n"+
			"the same file again adds nothing twice as long as the board remembers its jobs (its\n"+
			"idempotency window), so that after an error the command may simply be repeated.\n\n"+
			"With --as-it-was the file is what boardd job get -o json --log wrote, of one job or more: they are\n"+
			"put on the board as they were, with uuids, ages, states, attempts, operations and logs, but without\n"+
			"claims. A job that the board knows is refused, in the trash or ended too: purge it first. For\n"+
			"tenant-admin.",
		`boardd job post resize --details '{"path":"/a.png"}' --priority high --label customer=acme`+"\n"+
			"  boardd job post --from jobs.jsonl\n"+
			"  boardd job post --from job.json --as-it-was --board other",
		func(ctx context.Context, args []string) error {
			switch {
			case f.from != "" && len(args) > 0:
				return usagef("--from names the jobs: no NAME besides it")
			case f.asItWas && f.from == "":
				return usagef("--as-it-was wants --from: a file that boardd job get -o json --log wrote, or - for the standard input")
			case f.asItWas:
				return p.postAsItWas(ctx, f.from)
			case f.from != "":
				return p.postFile(ctx, f.from)
			}
			return p.postOne(ctx, f, args)
		})
	flags := c.Flags()
	f.ofJob(flags)
	flags.Var((*named)(&f.uuid), "uuid", "the job's uuid; posting it again adds nothing (default: a new one)")
	flags.Var(&f.notBefore, "not-before", "when the job may be claimed first: a time, or a duration from now")
	flags.StringVar(&f.from, "from", "", "file with a job on each line; - for standard input")
	flags.BoolVar(&f.asItWas, "as-it-was", false, "the file has jobs whole: put them on the board as they were")
	for _, name := range []string{"uuid", "not-before"} {
		c.MarkFlagsMutuallyExclusive("from", name)
	}
	ofJob := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&postFlags{}).ofJob(ofJob)
	ofJob.VisitAll(func(flag *pflag.Flag) { c.MarkFlagsMutuallyExclusive("from", flag.Name) })
	return c
}

// ofJob adds the flags that say what a job is, as schedules have them too.
func (f *postFlags) ofJob(flags *pflag.FlagSet) {
	flags.StringVar(&f.details, "details", "", "a JSON object, @FILE, or - for standard input (default {})")
	flags.StringVar(&f.priority, "priority", "", "VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW (default NORMAL)")
	flags.StringArrayVar(&f.labels, "label", nil, "KEY=VALUE; may be repeated")
	flags.Int32Var(&f.maxAttempts, "max-attempts", 0, "claims that may fail before the job goes to the trash (default: the board's)")
	flags.Var(&f.timeout, "timeout", "for how long one worker may hold the job: then it ends as if its lease had (default: any time)")
	flags.StringArrayVar(&f.operations, "operation", nil, "NAME or NAME=INPUT (JSON) of an operation; may be repeated")
	flags.StringArrayVar(&f.after, "after", nil, "UUID or UUID=STATUS,... of a job that has to end first (default SUCCESS); may be repeated")
	flags.Var((*named)(&f.batch), "batch", "the name of a batch, which counts the job")
	flags.Var((*named)(&f.uniqueKey), "unique-key", "a key that one job of the board has at a time")
	flags.Var(&f.uniqueWindow, "unique-window", "how long the job has the key from now, whatever becomes of it (default: while it is open)")
	flags.StringVar(&f.onConflict, "on-conflict", "", "if another job has the key: KEEP it, REPLACE it if it is unclaimed, or REJECT this one (default KEEP)")
}

func (p *program) postOne(ctx context.Context, f *postFlags, args []string) error {
	posting, err := p.posting(f, args)
	if err != nil {
		return err
	}
	board, done, err := p.onBoard()
	if err != nil {
		return err
	}
	defer done()
	jobs, err := board.Post(ctx, posting)
	if !partly(err) {
		return p.inDoubt(err, posting.Uuid)
	}
	if keptFor(posting, jobs[0]) {
		p.complain(fmt.Sprintf("nothing was posted: job %s has the key %q", jobs[0].GetUuid(), f.uniqueKey))
	}
	shown := p.show(postResults([]*client.NewJob{posting}, jobs, err), func(t *table) {
		if jobs[0] != nil {
			jobRows(jobs)(t)
		}
	})
	if err != nil {
		return p.inDoubt(err, posting.Uuid)
	}
	return shown
}

// inDoubt says how to repeat a command, where it is not known whether it posted a job: with the
// job's uuid, which adds nothing if it did. Without it there would be two.
func (p *program) inDoubt(err error, uuid string) error {
	if exitCode(err) != exitUnknown {
		return err
	}
	p.complainOf(err)
	return codeError{exitUnknown, "the job may be on the board: repeat the command with --uuid " + uuid + ", which adds nothing if it is"}
}

func (p *program) posting(f *postFlags, args []string) (*client.NewJob, error) {
	if len(args) != 1 {
		return nil, usagef("want one NAME, got %d: the job's details go into --details", len(args))
	}
	if args[0] == "" {
		return nil, usagef("NAME: want a text that is not empty")
	}
	posting := &client.NewJob{Name: args[0], Uuid: f.uuid, NotBefore: f.notBefore.proto(), MaxAttempts: f.maxAttempts, Timeout: f.timeout.proto(), Batch: f.batch}
	if f.uuid != "" {
		if err := uuids([]string{f.uuid}, true); err != nil {
			return nil, err
		}
	}
	var err error
	if posting.Priority, err = priority(f.priority); err != nil {
		return nil, err
	}
	if posting.Labels, err = labels("label", f.labels); err != nil {
		return nil, err
	}
	if posting.Unique, err = f.unique(); err != nil {
		return nil, err
	}
	if posting.Operations, err = newOperations(f.operations); err != nil {
		return nil, err
	}
	if posting.After, err = prerequisites(f.after); err != nil {
		return nil, err
	}
	posting.Details, err = p.object("--details", f.details)
	return posting, err
}

// behindDashes reads a job's name and flags as they stand behind --.
func (p *program) behindDashes(args []string) (*client.NewJob, error) {
	f := &postFlags{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.ofJob(flags)
	if err := flags.Parse(args); err != nil {
		return nil, usagef("behind --: %v", err)
	}
	return p.posting(f, flags.Args())
}

// unique reads the flags of the unique key.
func (f *postFlags) unique() (*boarddv1.Unique, error) {
	window := f.uniqueWindow.proto()
	if f.uniqueKey == "" {
		if window != nil || f.onConflict != "" {
			return nil, usagef("--unique-window and --on-conflict say what holds for a --unique-key: want one")
		}
		return nil, nil
	}
	u := &boarddv1.Unique{Key: f.uniqueKey, Window: window}
	if f.onConflict != "" {
		n, err := enum("--on-conflict", f.onConflict, boarddv1.OnConflict_Enum_value, "")
		if err != nil {
			return nil, err
		}
		u.OnConflict = boarddv1.OnConflict_Enum(n)
	}
	return u, nil
}

// newOperations reads NAME or NAME=INPUT arguments.
func newOperations(given []string) ([]*boarddv1.NewOperation, error) {
	var list []*boarddv1.NewOperation
	for _, text := range given {
		name, input, _ := strings.Cut(text, "=")
		op := &boarddv1.NewOperation{Name: name}
		if input != "" {
			if !json.Valid([]byte(input)) {
				return nil, usagef("--operation %q: want NAME, or NAME=INPUT with JSON such as fetch={\"url\":\"x\"}", text)
			}
			op.Input = []byte(input)
		}
		list = append(list, op)
	}
	return list, nil
}

// prerequisites reads UUID or UUID=STATUS,... arguments.
func prerequisites(given []string) ([]*boarddv1.Prerequisite, error) {
	var list []*boarddv1.Prerequisite
	for _, text := range given {
		uuid, statuses, _ := strings.Cut(text, "=")
		if err := uuids([]string{uuid}, true); err != nil {
			return nil, err
		}
		p := &boarddv1.Prerequisite{Uuid: uuid}
		for name := range strings.SplitSeq(statuses, ",") {
			if name == "" {
				continue
			}
			n, err := enum("--after", name, boarddv1.OperationStatus_Enum_value, "NONE")
			if err != nil {
				return nil, err
			}
			p.Statuses = append(p.Statuses, boarddv1.OperationStatus_Enum(n))
		}
		list = append(list, p)
	}
	return list, nil
}

// object reads the value of a flag that takes a JSON object.
func (p *program) object(flag, given string) ([]byte, error) {
	var content []byte
	var err error
	where := flag
	switch {
	case given == "":
		return nil, nil
	case given == "-":
		where = "standard input"
		content, err = io.ReadAll(p.in)
	case strings.HasPrefix(given, "@"):
		where = given[1:]
		content, err = os.ReadFile(where)
	default:
		content = []byte(given)
	}
	if err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(content, &object); err != nil || object == nil {
		if err == nil {
			return nil, usagef("%s: want a JSON object, got null", where)
		}
		if other, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, usagef("%s: want a JSON object such as {\"path\":\"/a.png\"}, got %s", where, other.Value)
		}
		return nil, usagef("%s: want a JSON object such as {\"path\":\"/a.png\"}: %v", where, err)
	}
	return []byte(strings.TrimSpace(string(content))), nil
}
