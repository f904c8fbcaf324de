package simulation

import (
	"math/rand/v2"
)

// A Game says what is stepped and how.
type Game struct {
	Name    string
	Actions []Action
	Length  int // steps of a program

	// Open returns a world in its first state. It is called where time stands still
	// until a step sleeps. What Open starts has to end when the world is closed.
	Open func(*Recorder) World

	// Also lists what has to be seen besides each action with each of its faults.
	Also []Pair
}

// A World is what a program is run on.
type World interface {
	// Step takes a step, and then checks everything that has to hold. An error says
	// what does not.
	Step(s *Step) error

	Close()
}

// An Action is something that steps do.
type Action struct {
	Name   string
	Weight int      // how often it comes, beside the others
	Most   []uint8  // how many ways each of its choices has; at most Choices
	Faults []string // what may go wrong with it
}

// Program returns the program of a seed.
//
// Each seed has its own mix: some actions come more often than others, and one pair
// of an action and a fault, which goes round with the seeds, comes in every fifth step.
// So what is rare by chance is still seen as often as everything else.
func (g *Game) Program(seed uint64) Program {
	random := rand.New(rand.NewPCG(seed, sumOf(g.Name)))
	weights, sum := make([]int, len(g.Actions)), 0
	for i := range g.Actions {
		weights[i] = g.Actions[i].Weight * [...]int{1, 2, 2, 6}[random.IntN(4)]
		sum += weights[i]
	}
	favoured := g.favoured(seed)
	troubled := 1 + random.IntN(4) // of eight steps
	p := make(Program, g.Length)
	for n := range p {
		i, fault := favoured.action, favoured.fault
		if random.IntN(5) > 0 {
			i, fault = draw(random, weights, sum), ""
			if f := g.Actions[i].Faults; len(f) > 0 && random.IntN(8) < troubled {
				fault = f[random.IntN(len(f))]
			}
		}
		p[n] = Step{Do: g.Actions[i].Name, Fault: fault}
		for k, most := range g.Actions[i].Most {
			p[n].Choices[k] = uint8(random.IntN(int(most)))
		}
	}
	return p
}

func draw(random *rand.Rand, weights []int, sum int) int {
	at := random.IntN(sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

// aim is an action by its number, and a fault.
type aim struct {
	action int
	fault  string
}

// favoured returns the pair that a seed is steered to.
func (g *Game) favoured(seed uint64) aim {
	n := 0
	for i := range g.Actions {
		n += 1 + len(g.Actions[i].Faults)
	}
	at := int(seed % uint64(n))
	for i := range g.Actions {
		faults := g.Actions[i].Faults
		if at == 0 {
			return aim{action: i}
		}
		if at <= len(faults) {
			return aim{i, faults[at-1]}
		}
		at -= 1 + len(faults)
	}
	return aim{}
}

// Possible returns every pair that programs of the game come to.
func (g *Game) Possible() []Pair {
	pairs := append([]Pair(nil), g.Also...)
	for i := range g.Actions {
		pairs = append(pairs, Pair{g.Actions[i].Name, ""})
		for _, f := range g.Actions[i].Faults {
			pairs = append(pairs, Pair{g.Actions[i].Name, f})
		}
	}
	return pairs
}
