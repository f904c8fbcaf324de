package catalog

import (
	"context"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
)

// wordsAtOnce is how many documents of places are listed together.
const wordsAtOnce = 256

// Servers returns, for each of these boards, the IDs of the hosts that live and say that
// they serve it at its place. One that tries to serve another board there does not. What is
// said of places whose keys lie between is read with them.
func Servers(ctx context.Context, in driver.Documents, uses []Use) ([][]string, error) {
	keys := make([]string, len(uses))
	for i := range uses {
		keys[i] = LocationNamed(uses[i].Location).key()
	}
	found, err := wordsAt(ctx, in, keys)
	if err != nil {
		return nil, err
	}
	hosts, err := Hosts(ctx, in) // after the words, as bring does
	if err != nil {
		return nil, err
	}
	servers := make([][]string, len(uses))
	for i := range uses {
		board := uses[i].name()
		for _, h := range hosts {
			_, served := h.served(keys[i], board)
			if served || slices.ContainsFunc(found[keys[i]], func(s said) bool { return s.Board == board && s.by([]Host{h}) }) {
				servers[i] = append(servers[i], h.ID)
			}
		}
	}
	return servers, nil
}

// wordsAt returns what hosts say of places, living or not.
func wordsAt(ctx context.Context, in driver.Documents, keys []string) (map[string][]said, error) {
	found := map[string][]said{}
	if len(keys) > fewPlaces {
		first, last := slices.Min(keys), slices.Max(keys)
		before := first[:len(first)-1] // hardly a key stands between
		err := listWords(ctx, in, before, last, func(page []driver.Document) error {
			for i := range page {
				w, err := readWords(&page[i])
				if err != nil {
					return err
				}
				found[page[i].Name] = w.Said
			}
			return nil
		})
		return found, err
	}
	for _, key := range keys {
		g := &page{key: key}
		if g.read(ctx, in); g.err != nil {
			return nil, g.err
		}
		found[key] = g.words.Said
	}
	return found, nil
}

// listWords goes through the documents of the places whose keys come after one, and at least up
// to the last one; "": all.
func listWords(ctx context.Context, in driver.Documents, after, last string, do func(page []driver.Document) error) error {
	for last == "" || after < last {
		list, err := in.List(ctx, driver.Space{Name: wordSpace}, after, wordsAtOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		if err := do(list); err != nil {
			return err
		}
		after = list[len(list)-1].Name
	}
	return nil
}
