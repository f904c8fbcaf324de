package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
)

func (p *program) jobCommand() *cobra.Command {
	return p.group("job", "Post, look at, claim and end jobs", "",
		p.jobPostCommand(), p.jobListCommand(), p.jobGetCommand(), p.jobCountCommand(), p.jobWaitCommand(),
		p.jobWatchCommand(), p.jobExplainCommand(), p.jobClaimCommand(),
		p.jobExtendCommand(), p.jobConsumeCommand(), p.jobAbandonCommand(), p.jobTrashCommand(),
		p.jobRestoreCommand(), p.jobPurgeCommand(), p.jobReleaseCommand(),
		p.jobCancelCommand(), p.jobPriorityCommand(), p.jobArchiveCommand(), p.jobLogCommand())
}

// jobRows makes a table of jobs; those that could not be had are left out. Due
// times and labels have columns where any of the jobs has some.
func jobRows(jobs []*client.Job) func(*table) {
	due := slices.ContainsFunc(jobs, func(j *client.Job) bool { return j.GetNotBefore() != nil })
	labeled := slices.ContainsFunc(jobs, func(j *client.Job) bool { return len(j.GetLabels()) > 0 })
	return func(t *table) {
		row := func(notBefore, labels any, cells ...any) {
			if due {
				cells = append(cells, notBefore)
			}
			if labeled {
				cells = append(cells, labels)
			}
			t.row(cells...)
		}
		row("NOT BEFORE", "LABELS", "UUID", "NAME", "STATE", "PRIORITY", "ATTEMPT", "OWNER", "CREATED")
		for _, j := range jobs {
			if j != nil {
				row(j.GetNotBefore(), joined(j.GetLabels()), j.GetUuid(), j.GetName(), stateOf(j), j.GetPriority(), j.GetAttempt(), j.GetOwner(), j.GetCreatedAt())
			}
		}
	}
}

// stateOf is a job's state and, when it has ended, how.
func stateOf(j *client.Job) string {
	if j.GetOutcome() == boarddv1.Outcome_NONE {
		if j.GetState() == boarddv1.State_UNCLAIMED && j.GetNotBefore().AsTime().After(time.Now()) {
			return j.GetState().String() + "/DELAYED"
		}
		return j.GetState().String()
	}
	return j.GetState().String() + "/" + j.GetOutcome().String()
}

// jobLines shows all there is to say about one job.
func jobLines(j *client.Job) func(*table) {
	return func(t *table) {
		t.line("uuid", j.GetUuid())
		t.line("name", j.GetName())
		t.line("state", stateOf(j))
		t.line("priority", j.GetPriority())
		t.line("owner", j.GetOwner())
		t.line("lease until", j.GetLeaseExpiresAt())
		if j.GetMaxAttempts() > 0 {
			t.row("attempt:", text(j.GetAttempt())+" of "+text(j.GetMaxAttempts()))
		} else {
			t.line("attempt", j.GetAttempt())
		}
		if j.Timeout != nil {
			t.row("timeout:", j.GetTimeout().AsDuration().String())
		}
		if u := j.GetUnique(); u != nil {
			kept := "while it is open"
			if u.Window != nil {
				kept = "for " + u.GetWindow().AsDuration().String()
			}
			t.row("unique key:", u.GetKey()+" ("+kept+")")
		}
		t.line("batch", j.GetBatch())
		t.line("not before", j.GetNotBefore())
		t.line("created", j.GetCreatedAt())
		t.line("modified", j.GetModifiedAt())
		t.line("started", j.GetStartedAt())
		t.line("ended", j.GetEndedAt())
		t.line("labels", joined(j.GetLabels()))
		if book := j.GetBook(); book.GetUuid() != "" || book.GetName() != "" {
			t.line("book", strings.TrimSpace(book.GetUuid()+" "+book.GetName()))
		}
		for _, a := range j.GetAfter() {
			t.row("after:", a.GetUuid()+" "+joinedStatuses(a.GetStatuses()))
		}
		t.line("last reason", j.GetLastReason())
		if len(j.GetOperations()) > 0 {
			t.line("operations", j.GetOperationStatus())
			t.line("operation priority", j.GetOperationPriority())
		}
		t.line("details", j.GetDetails())
		if raw := j.GetDetailsRaw(); raw != nil {
			t.line("details", text(len(raw.GetData()))+" bytes of "+raw.GetEncoding())
		}
	}
}

func joinedStatuses(list []boarddv1.OperationStatus_Enum) string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.String()
	}
	return strings.Join(names, ",")
}
