package client

import (
	"iter"
	"slices"
	"strings"
)

// pageSize is how many entries of a list are asked for at once.
const pageSize = 1000

// pages goes through a list that ask returns a page of, with the token of the next one; "": there
// is none. It ends with the first error, which comes without an entry.
func pages[T any](ask func(token string) (page []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := ""; ; {
			page, next, err := ask(token)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, one := range page {
				if !yield(one, nil) {
					return
				}
			}
			if token = next; token == "" {
				return
			}
		}
	}
}

// whole returns all entries of a list by name, each once. A server that knows no pages of the list
// answers all of it, and may do so in place of a server that began with pages.
func whole[T any](list iter.Seq2[T, error], name func(T) string) (all []T, err error) {
	known := map[string]bool{}
	for one, err := range list {
		if err != nil {
			return nil, err
		}
		if n := name(one); !known[n] {
			known[n] = true
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return all, nil
}
