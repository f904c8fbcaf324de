//go:build !race

package replay_test

// daySeeds is on how many days a set of policies is tried.
const daySeeds = 20
