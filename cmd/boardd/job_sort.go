package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/boardd/boardd/sdk/client"
)

// ordered says in which order jobs are listed, where that is not the claim order.
type ordered struct {
	by      string
	reverse bool
}

// orders are what --sort takes: the field that has to be read, and how two jobs compare.
var orders = map[string]struct {
	field   string
	compare func(a, b *client.Job) int
}{
	"attempt":  {"attempt", func(a, b *client.Job) int { return cmp.Compare(a.GetAttempt(), b.GetAttempt()) }},
	"created":  {"createdAt", func(a, b *client.Job) int { return earlier(a.GetCreatedAt(), b.GetCreatedAt()) }},
	"due":      {"notBefore", func(a, b *client.Job) int { return earlier(a.GetNotBefore(), b.GetNotBefore()) }},
	"ended":    {"endedAt", func(a, b *client.Job) int { return earlier(a.GetEndedAt(), b.GetEndedAt()) }},
	"lease":    {"leaseExpiresAt", func(a, b *client.Job) int { return earlier(a.GetLeaseExpiresAt(), b.GetLeaseExpiresAt()) }},
	"modified": {"modifiedAt", func(a, b *client.Job) int { return earlier(a.GetModifiedAt(), b.GetModifiedAt()) }},
	"name":     {"name", func(a, b *client.Job) int { return cmp.Compare(a.GetName(), b.GetName()) }},
	"owner":    {"owner", func(a, b *client.Job) int { return cmp.Compare(a.GetOwner(), b.GetOwner()) }},
}

// earlier compares times. What has none comes last.
func earlier(a, b *timestamppb.Timestamp) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.AsTime().Compare(b.AsTime())
}

func orderNames() []string {
	var names []string
	for name := range orders {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (o *ordered) add(c *cobra.Command) {
	c.Flags().StringVar(&o.by, "sort", "", "list them by "+strings.Join(orderNames(), ", ")+" (default: as they will be claimed); all are read first")
	c.Flags().BoolVar(&o.reverse, "reverse", false, "the last ones first")
	_ = c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orderNames(), cobra.ShellCompDirectiveNoFileComp))
}

// given reports whether all jobs have to be read before the first is known.
func (o *ordered) given() (bool, error) {
	if _, ok := orders[o.by]; !ok && o.by != "" {
		return false, usagef("--sort %q: want one of %s", o.by, strings.Join(orderNames(), ", "))
	}
	return o.by != "" || o.reverse, nil
}

// fields adds to those that are to be shown the one that is sorted by.
func (o *ordered) fields(shown []string) []string {
	if field := orders[o.by].field; field != "" && len(shown) > 0 && !slices.Contains(shown, field) {
		return append(slices.Clip(shown), field)
	}
	return shown
}

// apply puts jobs, which come in claim order, into this one. Equal ones stay as they were.
func (o *ordered) apply(jobs []*client.Job) {
	if o.by != "" {
		slices.SortStableFunc(jobs, orders[o.by].compare)
	}
	if o.reverse {
		slices.Reverse(jobs)
	}
}
