package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/boardd/boardd/host/pin"
)

// pythonMain is the file that makes a folder a driver in Python.
const pythonMain = "__main__.py"

func (p *program) pluginBuildCommand() *cobra.Command {
	var out string
	c := p.command("build FOLDER", "Make one file of a folder with a driver's sources",
		"A folder with a go.mod is built by go, which has to be installed. One with a "+pythonMain+"\n"+
			"becomes a program of all its files (a zip archive that Python runs). The same sources make\n"+
			"the same file.",
		"boardd plugin build mydriver -f plugins/mydriver",
		func(ctx context.Context, args []string) error {
			folder, err := one(args, "folder")
			if err != nil {
				return err
			}
			data, err := buildDriver(ctx, folder)
			if err != nil {
				return err
			}
			if out == "" {
				out = fileName(folder)
				if info, err := os.Stat(out); err == nil && info.IsDir() {
					return usagef("%s is a folder here: --out names the file to write", out)
				}
			}
			if err := os.WriteFile(out, data, 0o755); err != nil { //nolint:gosec // a program
				return usagef("%v", err)
			}
			return p.line("%s: %d bytes, SHA-256 %s", out, len(data), pin.Digest(data))
		})
	c.Flags().StringVarP(&out, "out", "f", "", "file to write (default FOLDER's name, here)")
	return c
}

// fileName is the last part of a path, also of one such as ".".
func fileName(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	return filepath.Base(path)
}

// driverAt returns the program of a file, or that which is built of a folder.
func driverAt(ctx context.Context, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("%v", err)
	}
	if info.IsDir() {
		return buildDriver(ctx, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return data, nil
}

func buildDriver(ctx context.Context, folder string) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
		return buildGo(ctx, folder)
	}
	if _, err := os.Stat(filepath.Join(folder, pythonMain)); err == nil {
		return packPython(folder)
	}
	return nil, usagef("%s: want a folder with a go.mod or a %s, such as boardd plugin new makes", folder, pythonMain)
}

func buildGo(ctx context.Context, folder string) (program []byte, err error) {
	work, err := os.MkdirTemp("", "boardd-driver-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	out := filepath.Join(work, "driver")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", out, ".")
	cmd.Dir = folder
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, findings("go build in %s: %v\n%s", folder, err, strings.TrimSpace(string(said)))
	}
	return os.ReadFile(out)
}

// packPython makes a program of a folder, as Python's module zipapp does, but the same
// one each time. What begins with a dot, what Python compiled, and the README are left
// out.
func packPython(folder string) ([]byte, error) {
	main, err := os.ReadFile(filepath.Join(folder, pythonMain))
	if err != nil {
		return nil, usagef("%v", err)
	}
	first, _, _ := strings.Cut(string(main), "\n")
	if !strings.HasPrefix(first, "#!") {
		return nil, findings("%s: its first line says what runs it: want one such as #!/usr/bin/python3", filepath.Join(folder, pythonMain))
	}
	var out bytes.Buffer
	out.WriteString(first + "\n")
	archive := zip.NewWriter(&out)
	archive.SetOffset(int64(out.Len()))
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case path != folder && (name[0] == '.' || name == "__pycache__"):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || filepath.Ext(name) == ".md":
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		w, err := archive.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(within), Method: zip.Deflate})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	err = errors.Join(err, archive.Close()) // which writes the end of it
	return out.Bytes(), err
}
