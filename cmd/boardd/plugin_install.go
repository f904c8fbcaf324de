package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/pin"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/plugin"
)

// installFlags are the flags of plugin install.
type installFlags struct {
	shipped   shippedFlags
	name, dir string
}

// shippedFlags say which file of somebody else's was meant.
type shippedFlags struct{ sha256, key string }

func (f *shippedFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.sha256, "sha256", "", "the SHA-256 that the file must have")
	c.Flags().StringVar(&f.key, "key", "", "public key of Ed25519 (PEM) that must have signed it; the signature is FILE"+pin.SignatureEnding)
}

// check refuses a file that is not the one that was meant, and returns its digest.
func (f *shippedFlags) check(path string, data []byte) (string, error) {
	if f.sha256 != "" {
		if _, err := pin.ParseDigest(f.sha256); err != nil {
			return "", usagef("--sha256: %v", err)
		}
	}
	digest, err := pin.Check(path, data, f.sha256)
	if err != nil {
		return "", findings("%v", err)
	}
	if f.key == "" {
		return digest, nil
	}
	key, err := pin.ReadKey(f.key)
	if err != nil {
		return "", usagef("--key: %v", err)
	}
	if err := pin.Signed(path, data, []pin.Key{key}); err != nil {
		return "", findings("%v", err)
	}
	return digest, nil
}

func (p *program) pluginInstallCommand() *cobra.Command {
	f := &installFlags{}
	c := p.command("install FILE|FOLDER", "Put a driver into the folder of drivers",
		"The program is started first, and put in place only if it answers as a driver; one of the same\n"+
			"name is replaced at once. A folder is built before, see boardd plugin build. The signature\n"+
			"that lies beside FILE comes along. It prints the digest, and how the configuration demands it.",
		"boardd plugin install mydriver --sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		func(ctx context.Context, args []string) error {
			path, err := one(args, "program")
			if err != nil {
				return err
			}
			return p.pluginInstall(ctx, f, path)
		})
	f.shipped.add(c)
	c.Flags().StringVar(&f.name, "name", "", "the name by which backends name it (default that of FILE)")
	c.Flags().StringVar(&f.dir, "plugin-dir", "", "folder of drivers; BOARDD_PLUGIN_DIR")
	return c
}

// installed is what plugin install did, as -o json prints it.
type installed struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Summary  string `json:"summary"`
	Path     string `json:"path"`
	SHA256   string `json:"sha256"`
	Replaced string `json:"replaced"` // digest of the program that was there before
}

func (p *program) pluginInstall(ctx context.Context, f *installFlags, from string) error {
	dir, err := p.installFolder(f.dir)
	if err != nil {
		return err
	}
	name := f.name
	if name == "" {
		name = fileName(from)
	}
	if err := tenant.CheckName(name); err != nil {
		return usagef("no backend could name the driver: %v; --name gives it another name", err)
	}
	if builtin()[name] != nil {
		return usagef("boardd has the driver %s built in: --name gives this one another name", name)
	}
	data, err := driverAt(ctx, from)
	if err != nil {
		return err
	}
	digest, err := f.shipped.check(from, data)
	if err != nil {
		return err
	}
	done := installed{Name: name, Path: filepath.Join(dir, name), SHA256: digest}
	if before, err := os.ReadFile(done.Path); err == nil {
		done.Replaced = pin.Digest(before)
	}
	info, err := p.putDriver(ctx, from, done.Path, data)
	if err != nil {
		return err
	}
	done.Version, done.Summary = info.Version, info.Summary
	return p.showInstalled(done)
}

// installFolder returns the folder that a driver goes to, and makes it.
func (p *program) installFolder(dir string) (string, error) {
	for _, other := range []string{p.getenv("BOARDD_PLUGIN_DIR"), pluginsBeside()} {
		if dir == "" {
			dir = other
		}
	}
	if dir == "" {
		return "", usagef("into which folder? --plugin-dir or BOARDD_PLUGIN_DIR names it")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755) //nolint:gosec // of programs, which everybody may run
	}
	if err != nil {
		return "", usagef("the folder of drivers: %v", err)
	}
	return dir, nil
}

// putDriver writes a program beside its place, starts it there, and moves it into its
// place if it is a driver. The file is whole at any time, and a server that runs the
// one before goes on with it.
func (p *program) putDriver(ctx context.Context, from, path string, data []byte) (info driver.Info, err error) {
	work, err := os.MkdirTemp(filepath.Dir(path), ".install-") // which is skipped as a driver
	if err != nil {
		return info, usagef("%v", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	trial := filepath.Join(work, filepath.Base(path))
	if err := durable.WriteFile(trial, data); err != nil {
		return info, err
	}
	if err := os.Chmod(trial, 0o755); err != nil { //nolint:gosec // a program
		return info, err
	}
	process, err := plugin.Start(ctx, plugin.Command{
		Path: trial, SHA256: pin.Digest(data), Logger: slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return info, findings("%s is no driver that works here, and was not installed: %v", from, err)
	}
	info = process.Info()
	process.Kill()
	if err := putSignature(from, path); err != nil {
		return info, err
	}
	if err := os.Rename(trial, path); err != nil {
		return info, usagef("%v", err)
	}
	return info, durable.SyncFolder(filepath.Dir(path))
}

// putSignature brings the signature of a program along, or removes that of the one
// before.
func putSignature(from, path string) error {
	signature, err := os.ReadFile(from + pin.SignatureEnding)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Remove(path + pin.SignatureEnding); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if err != nil {
		return usagef("%v", err)
	}
	if err := durable.WriteFile(path+pin.SignatureEnding, signature); err != nil {
		return err
	}
	return os.Chmod(path+pin.SignatureEnding, 0o644) //nolint:gosec // it is no secret
}

func (p *program) showInstalled(done installed) error {
	if p.output == "json" {
		return json.NewEncoder(p.out).Encode(done)
	}
	t := &table{}
	t.line("installed", strings.TrimSpace(done.Name+" "+done.Version)+": "+done.Summary)
	t.line("path", done.Path)
	t.line("SHA-256", done.SHA256)
	if done.Replaced != "" && done.Replaced != done.SHA256 {
		t.line("in place of", done.Replaced)
	}
	if err := t.write(p.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "\nSo that no other program is started in its place:\n\nbackend %q {\n  driver = %q\n  sha256 = %q\n}\n", done.Name, done.Name, done.SHA256)
	return err
}
