// Package soak says whether a server that has done the same thing many times still
// takes as much of everything as after the first times.
package soak

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Sample is how much of everything there is, by name.
type Sample map[string]int64

// Room is how much more there may be of something than there was: a part of what there
// was, and a number.
type Room struct {
	Part   float64
	Number int64
}

// Allowed is the room for each name that a sample may have.
var Allowed = map[string]Room{
	"goroutines":   {0, 24},          // of the server
	"files":        {0, 24},          // open ones of the server and its drivers, connections included
	"connections":  {0, 24},          // of those, sockets
	"threads":      {0, 16},          // of the server and its drivers
	"heap_bytes":   {0.25, 6 << 20},  // of the server, after a collection
	"memory_bytes": {0.35, 32 << 20}, // of the server and its drivers, that belongs to no file
	"data_bytes":   {0.25, 8 << 20},  // in the data folder, without the audit log
	"data_files":   {0, 8},           // likewise
	"redis_keys":   {0, 6},
	"redis_bytes":  {0.25, 96 << 20}, // most of it what the streams keep

	"redis_stream":      {0, 110_000}, // entries of all streams, which keep thousands for watchers that come back
	"zookeeper_nodes":   {0.1, 2_000},
	"zookeeper_bytes":   {0.25, 1 << 20},
	"zookeeper_watches": {0, 24},
	"zookeeper_mortals": {0, 4}, // nodes that end with a session

	"postgres_rows":      {0, 200},     // without those of the next two
	"postgres_changes":   {0, 80_000},  // rows for watchers that come back, of which there are so many
	"postgres_documents": {0.1, 2_000}, // one more with each board and each token that came and went
	"postgres_dead":      {0, 500},     // rows that VACUUM does not remove
	"postgres_bytes":     {0.25, 24 << 20},
	"postgres_sessions":  {0, 12},
}

// Grown returns what there is more of in now than was before and has room, and what one
// of them lacks, in the order of the names.
func Grown(before, now Sample) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		room, known := Allowed[name]
		most := before[name] + int64(room.Part*float64(before[name])) + room.Number
		switch n, there := now[name]; {
		case !known:
			list = append(list, name+": nobody says how much it may grow")
		case !there:
			list = append(list, name+": it was not measured again")
		case n > most:
			list = append(list, fmt.Sprintf("%s: %d, and was %d: want at most %d", name, n, before[name], most))
		}
	}
	return list
}

// Record appends a sample to a file of comma-separated values, one line for each name.
func Record(path, run string, round int, s Sample) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := csv.NewWriter(file)
	at := time.Now().UTC().Format(time.RFC3339)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if err := out.Write([]string{at, run, strconv.Itoa(round), name, strconv.FormatInt(s[name], 10)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Disk returns how many files a folder holds, and of how many bytes, without one of the
// folders in it. Files that go meanwhile do not count.
func Disk(folder, without string) (files, bytes int64, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == without:
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		if info, err := entry.Info(); err == nil {
			files++
			bytes += info.Size()
		}
		return nil
	})
	return files, bytes, err
}
