// Package typescript holds the TypeScript client, and here its tests: they are Node's own,
// run against the package as npm packs it.
package typescript_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// sources are what the package is built from, and what its tests are.
var sources = []string{".gitignore", "package.json", "package-lock.json", "tsconfig.json", "README.md", "src/*.ts", "test/*"}

// TestTypeScript builds and packs the package, installs what was packed, and runs the tests
// on that.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	node, modules := needs(t)
	program := testserver.Build(t, "./cmd/boardd")
	work := t.TempDir()
	folder := filepath.Join(work, "clients", "typescript")
	for _, pattern := range sources {
		copyFiles(t, pattern, folder)
	}
	proto := filepath.Join("..", "..", "sdk", "boardd", "v1", "boardd.proto")
	copyFile(t, proto, filepath.Join(work, "sdk", "boardd", "v1", "boardd.proto"))
	link(t, modules, filepath.Join(folder, "node_modules"))
	path := strings.Join([]string{filepath.Join(modules, ".bin"), filepath.Dir(node), os.Getenv("PATH")}, string(os.PathListSeparator))
	environment := append(os.Environ(), "PATH="+path, "BOARDD_PROGRAM="+program)

	// As npm would before it packs; but Debian's npm runs with no other Node than Debian's.
	run(t, folder, environment, "sh", "-c", buildScript(t))
	run(t, folder, os.Environ(), "npm", "pack", "--silent", "--ignore-scripts")
	site := install(t, folder, modules, work)
	copyFile(t, filepath.Join("test", "tsconfig.json"), filepath.Join(site, "test", "tsconfig.json"))
	copyFiles(t, "test/*.ts", site)
	copyFile(t, "tsconfig.json", filepath.Join(site, "tsconfig.json"))
	example := filepath.Join("..", "..", "examples", "web-typescript", "src", "main.ts")
	copyFile(t, example, filepath.Join(site, "test", "web", "main.ts"))
	write(t, filepath.Join(site, "test", "readme.ts"), readme(t))
	write(t, filepath.Join(site, "test", "batches.test.ts"), batches(t))
	write(t, filepath.Join(site, "package.json"), []byte(`{"type":"module"}`))
	run(t, site, environment, "sh", "-c", "tsc -p test")
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		run(t, site, environment, program, "client", "check", "--", node, filepath.Join("built", "checked.js"))
	})
	suites, err := filepath.Glob(filepath.Join(site, "built", "*.test.js"))
	if err != nil || len(suites) == 0 {
		t.Fatalf("there are no tests in test/ (%v)", err)
	}
	for _, suite := range suites {
		name := strings.TrimSuffix(filepath.Base(suite), ".test.js")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environment := environment
			if name == "fleet" {
				redis := testserver.StartRedis(t, testserver.RedisOptions{})
				plugins := filepath.Dir(testserver.Build(t, "./plugins/redis"))
				environment = append(slices.Clone(environment), "BOARDD_REDIS="+redis.Addr, "BOARDD_PLUGINS="+plugins, "BOARDD_DRAIN_DELAY=0s")
			}
			out := run(t, site, environment, node, "--test", "--test-reporter=tap", "--test-timeout=300000", suite)
			if !strings.Contains(out, "# fail 0\n") || strings.Contains(out, "# pass 0\n") || !strings.Contains(out, "# skipped 0\n") {
				t.Fatalf("not every test was run:\n%s", out)
			}
		})
	}
}

// needs returns a node that is new enough, and the folder with what package-lock.json names.
func needs(t *testing.T) (node, modules string) {
	t.Helper()
	for _, program := range []string{"protoc", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			testneed.Skip(t, program+" is missing")
		}
	}
	tools := filepath.Join(testserver.Root(t), ".tools")
	installed, err := filepath.Glob(filepath.Join(tools, "node", "node_modules", "node-linux-*", "bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range append([]string{"node"}, installed...) {
		if path, err := exec.LookPath(program); err == nil && major(t, path) >= 20 {
			if node, err = filepath.Abs(path); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if node == "" {
		testneed.Skip(t, "Node 20 or later is missing (scripts/setup.sh installs it)")
	}
	cache := filepath.Join(tools, "typescript")
	have, err := os.ReadFile(filepath.Join(cache, "package-lock.json"))
	want, lockErr := os.ReadFile("package-lock.json")
	if lockErr != nil {
		t.Fatal(lockErr)
	}
	if bytes.Contains(want, []byte(`"resolved"`)) {
		t.Error("package-lock.json names the registry of the machine where it was made: make it with npm install --omit-lockfile-registry-resolved")
	}
	if err != nil || !bytes.Equal(have, want) {
		testneed.Skip(t, "the packages of clients/typescript/package-lock.json are not in .tools/typescript (scripts/setup.sh installs them)")
	}
	return node, filepath.Join(cache, "node_modules")
}

func major(t *testing.T, node string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), node, "--version").Output()
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("%s says it is of version %q", node, out)
	}
	return n
}

// install unpacks what npm packed to where Node finds it, and looks at what it contains.
func install(t *testing.T, folder, modules, work string) (site string) {
	t.Helper()
	packed, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("npm packed %v (%v), want one file", packed, err)
	}
	site = filepath.Join(work, "site")
	names := unpack(t, packed[0], filepath.Join(site, "node_modules", "@boardd", "client"))
	for _, want := range []string{"package.json", "README.md", "dist/index.js", "dist/index.d.ts", "dist/gen/boardd/v1/boardd_pb.js"} {
		if !slices.Contains(names, want) {
			t.Errorf("the package has no %s: %v", want, names)
		}
	}
	for _, name := range names {
		if first, _, _ := strings.Cut(name, "/"); !slices.Contains([]string{"package.json", "README.md", "dist", "src"}, first) {
			t.Errorf("the package has %s, which nobody needs", name)
		}
	}
	for _, name := range []string{"@bufbuild", "@connectrpc", "@types", "undici-types"} {
		link(t, filepath.Join(modules, name), filepath.Join(site, "node_modules", name))
	}
	return site
}

// readme is the code of README.md as one module, to be compiled.
func readme(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```ts\n")
	code := "declare const uuid: string, cursor: string, signal: AbortSignal;\n" +
		"declare function resize(path: string, options: { signal: AbortSignal }): Promise<void>;\n"
	for _, part := range parts[1:] {
		block, _, closed := strings.Cut(part, "```")
		if !closed {
			t.Fatal("README.md has a block that does not end")
		}
		code += block
	}
	if len(parts) < 4 {
		t.Fatalf("README.md has %d blocks of code, want at least 3", len(parts)-1)
	}
	return []byte(code)
}

// batches is the block of README.md on keys, schedules and batches as a test, to be run.
func batches(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "// One job of the board has the key at a time"
	before, block, found := strings.Cut(string(text), begin)
	block, _, closed := strings.Cut(block, "```")
	imports := before[strings.LastIndex(before, "```ts\n")+len("```ts\n"):]
	if !found || !closed || !strings.HasPrefix(imports, "import ") {
		t.Fatalf("README.md has no block of imports and %q", begin)
	}
	return []byte(`import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "@boardd/client";
import { Server } from "./server.js";
` + imports + `
test("what README.md says of keys, schedules and batches", async () => {
const board = await (await Server.start()).board();
//` + block + `
assert.equal(again.uuid, first.uuid);
assert.deepEqual(worked, ["photo", "photo", "album"]);
assert.deepEqual([batch?.done, batch?.consumed], [true, 2n]);
});
`)
}

func unpack(t *testing.T, archive, folder string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(header.Name, "package/")
		if !ok || !filepath.IsLocal(name) {
			t.Fatalf("the package has a file %q", header.Name)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), text)
		names = append(names, name)
	}
}

// buildScript is what package.json builds the package with.
func buildScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct{ Scripts struct{ Build string } }
	if err := json.Unmarshal(text, &manifest); err != nil || manifest.Scripts.Build == "" {
		t.Fatalf("package.json has no script to build with (%v)", err)
	}
	return manifest.Scripts.Build
}

func run(t *testing.T, folder string, environment []string, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env = folder, environment
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func copyFiles(t *testing.T, pattern, to string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no %s (%v)", pattern, err)
	}
	for _, path := range paths {
		copyFile(t, path, filepath.Join(to, path))
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, text)
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}
