package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/policy"
	policybuild "github.com/boardd/boardd/sdk/policy/build"
	"github.com/boardd/boardd/sdk/policy/native"
	"github.com/boardd/boardd/sdk/policy/policytest"
)

// parameters reads the flags of commands that run a module here.
func parameters(pairs []string, object string) (map[string]any, error) {
	text, err := paramFlags(pairs, object)
	if err != nil || text == nil {
		return nil, err
	}
	return decodeParameters(text)
}

func decodeParameters(text []byte) (set map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return set, d.Decode(&set)
}

func (p *program) policyTestCommand() *cobra.Command {
	var golden string
	var update bool
	c := p.command("test FILE.wasm|FOLDER CASES.json...", "Hold a policy against tables of jobs, workers and what is to come of them",
		"Each file is {\"params\": {...}, \"cases\": [{\"name\", \"now\", \"worker\": {...}, \"jobs\": [{\"name\", \"priority\",\n"+
			"\"labels\", \"details\", \"createdAt\", \"attempt\", \"maxAttempts\"}], \"verdicts\": [\"allow\", \"deny: REASON\"],\n"+
			"\"order\": [NAME...], \"fuel\": N}]}. Besides, the policy's answers may depend on nothing but what its\n"+
			"manifest declares, which is tried with jobs that are made up. A folder is built first; a policy\n"+
			"in Go then runs as a module and natively, and both have to be right. With --golden the fuel of\n"+
			"each case has to be what FILE says, neither more nor less; --update writes FILE.",
		"boardd policy test urgent.wasm cases.json\n  boardd policy test urgent cases.json --golden fuel.json",
		func(ctx context.Context, args []string) error {
			if len(args) < 2 {
				return usagef("want a module or a folder, and at least one file of cases")
			}
			if update && golden == "" {
				return usagef("--update writes the file that --golden names: give both")
			}
			b, err := moduleAt(ctx, args[0])
			if err != nil {
				return err
			}
			t := &trial{program: p, path: args[0], fuel: map[string]int64{}}
			if err := t.run(ctx, b, args[1:]); err != nil {
				return err
			}
			if golden != "" {
				if err := t.compareFuel(golden, update); err != nil {
					return err
				}
			}
			return t.say()
		})
	c.Flags().StringVar(&golden, "golden", "", "file with the fuel of each case, as JSON")
	c.Flags().BoolVar(&update, "update", false, "write the file that --golden names")
	return c
}

// trial is one run of policy test.
type trial struct {
	program *program
	path    string
	cases   int
	fuel    map[string]int64 // by file and case
	wrong   []string
}

func (t *trial) run(ctx context.Context, module []byte, files []string) error {
	var program string
	if policybuild.IsGo(t.path) {
		work, err := os.MkdirTemp("", "boardd-native-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work) //nolint:errcheck // a temporary folder
		if program, err = policybuild.Native(ctx, t.path, work, os.Environ()); err != nil {
			return findings("%v", err)
		}
	}
	for _, name := range files {
		table, err := readCases(name)
		if err != nil {
			return usagef("%s: %v", name, err)
		}
		t.cases += len(table.Cases)
		err = withModule(ctx, t.path, module, table.Params, func(rule *wasm.Policy) error {
			t.table(ctx, name, table, rule, rule.Used)
			return nil
		})
		if err == nil && program != "" {
			err = t.native(ctx, program, name, table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// native tries a table with the same source without WebAssembly.
func (t *trial) native(ctx context.Context, program, name string, table *policyTable) error {
	manifest, err := policybuild.Manifest(t.path)
	if err != nil {
		return findings("%v", err)
	}
	command := exec.CommandContext(ctx, program)
	command.Stderr = t.program.err
	rule, err := native.Start(command, manifest, table.Params)
	if err != nil {
		return findings("%s, natively: %v", t.path, err)
	}
	t.table(ctx, name+", natively", table, rule, nil)
	return rule.Close()
}

// table tries every case of a file, and what holds for every policy. Used is nil
// where no fuel is counted.
func (t *trial) table(ctx context.Context, name string, table *policyTable, rule policy.Policy, used func() int64) {
	for i := range table.Cases {
		c := &table.Cases[i]
		fuel, problems := c.problems(ctx, rule, used)
		if used != nil {
			t.fuel[name+": "+c.Name] = fuel
		}
		for _, problem := range problems {
			t.wrong = append(t.wrong, fmt.Sprintf("%s: %s: %s", name, c.Name, problem))
		}
	}
	for _, problem := range policytest.Problems(ctx, rule, 1) {
		t.wrong = append(t.wrong, fmt.Sprintf("%s: %s", name, problem))
	}
}

// compareFuel holds the fuel of each case against a file, or writes that.
func (t *trial) compareFuel(path string, update bool) error {
	if update {
		text, err := json.MarshalIndent(t.fuel, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // it is no secret
			return usagef("%v", err)
		}
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return usagef("%v; --update writes it", err)
	}
	var want map[string]int64
	if err := json.Unmarshal(text, &want); err != nil {
		return usagef("%s: %v", path, err)
	}
	for _, name := range sortedKeys(t.fuel) {
		switch n, ok := want[name]; {
		case !ok:
			t.wrong = append(t.wrong, fmt.Sprintf("%s: %s has no fuel for this case", name, path))
		case n != t.fuel[name]:
			t.wrong = append(t.wrong, fmt.Sprintf("%s: it used %d fuel, and %s says %d", name, t.fuel[name], path, n))
		}
	}
	for _, name := range sortedKeys(want) {
		if _, ok := t.fuel[name]; !ok {
			t.wrong = append(t.wrong, fmt.Sprintf("%s: there is no such case, but %s has its fuel", name, path))
		}
	}
	return nil
}

func (t *trial) say() error {
	for _, w := range t.wrong {
		if err := t.program.line("%s", w); err != nil {
			return err
		}
	}
	if len(t.wrong) > 0 {
		return findings("%d of what was tried went wrong", len(t.wrong))
	}
	return t.program.line("%d cases are as they should be", t.cases)
}
