//go:build race

package replay_test

// daySeeds is fewer with the race detector, with which a day takes seven times as long: what
// runs at the same time is the same on each of them. scripts/test.sh runs all without it.
const daySeeds = 5
