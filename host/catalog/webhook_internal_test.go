package catalog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
)

func webhookDocument(tb testing.TB, w *Webhook) driver.Document {
	tb.Helper()
	data, err := encode(w)
	if err != nil {
		tb.Fatal(err)
	}
	return driver.Document{Name: webhookKey(w.Tenant, w.Board, w.Name), Data: data, Version: 1}
}

// TestWebhooksTo compares the webhooks whose deliveries are on a board with those that a reader
// of all records would find, after changes of every kind, and in a view from before them.
func TestWebhooksTo(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	one := func(names ...string) string { return names[random.IntN(len(names))] }
	v := newView()
	check := func(v *View) {
		t.Helper()
		for _, tenant := range []string{"a", "b"} {
			for _, board := range []string{"d", "d-2", "e"} {
				var want []Webhook
				for at, w := range v.Webhooks.All() {
					if at.Tenant == tenant && w.Deliveries == board {
						want = append(want, w)
					}
				}
				if diff := cmp.Diff(want, v.WebhooksTo(tenant, board)); diff != "" {
					t.Fatalf("the webhooks of %s to %s:\n%s", tenant, board, diff)
				}
			}
		}
	}
	for range 2000 {
		before := v
		v = v.clone()
		w := Webhook{Tenant: one("a", "b"), Board: one("x", "x-2", "y", "d"), Name: one("1", "2", "3"), Deliveries: one("d", "d-2", "e")}
		if doc := webhookDocument(t, &w); random.IntN(3) > 0 {
			if err := v.put(doc); err != nil {
				t.Fatal(err)
			}
		} else {
			v.drop(doc.Name)
		}
		check(v)
		check(before)
	}
}

// BenchmarkWebhooksTo asks for those of one board, which every board does that a server has.
func BenchmarkWebhooksTo(b *testing.B) {
	for _, boards := range []int{100, 10_000} {
		v := newView()
		for n := range boards {
			w := Webhook{Tenant: "a", Board: fmt.Sprintf("b%d", n), Name: "w", Deliveries: fmt.Sprintf("d%d", n/10)}
			if err := v.put(webhookDocument(b, &w)); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("boards=%d", boards), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(v.WebhooksTo("a", "b7")) != 0 || len(v.WebhooksTo("a", "d7")) != 10 {
					b.Fatal("not those of the boards")
				}
			}
		})
	}
}
