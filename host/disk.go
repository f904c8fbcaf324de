package host

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/diskspace"
)

// Disk is how much room there is where the server keeps files.
type Disk struct {
	Path       string
	Free, Size uint64 // in bytes
	Low        bool   // less is free than the configuration's disk_low
}

// Disks returns the disks of the data folder and of each embedded store, by their
// folders. Where the system cannot tell, there are none.
func (h *Host) Disks() []Disk { return Disks(h.Settings()) }

// Disks returns the disks on which a server of a configuration keeps files.
func Disks(c *config.Config) []Disk {
	var disks []Disk
	for _, path := range diskFolders(c) {
		if free, all, ok := diskspace.In(path); ok { // not of a folder that is not there yet
			disks = append(disks, Disk{Path: path, Free: free, Size: all, Low: free < c.LowDisk()})
		}
	}
	return disks
}

// diskFolders returns the folders in which a server keeps files.
func diskFolders(c *config.Config) []string {
	var folders []string
	if c.DataDir != "" {
		folders = append(folders, c.DataDir)
	}
	for _, b := range c.Backends {
		if b.Driver != config.Embedded {
			continue
		}
		var settings struct{ Path string }
		_ = json.Unmarshal(b.Settings, &settings) // the driver says what is wrong with them
		if settings.Path != "" || c.DataDir != "" {
			folders = append(folders, cmp.Or(settings.Path, filepath.Join(c.DataDir, "backends", b.Name)))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// watchDisks notes which disks have little room left, and logs what has changed.
func (h *Host) watchDisks() {
	low := false
	for _, d := range h.Disks() {
		low = low || d.Low
		before, known := h.lowDisks[d.Path]
		switch {
		case d.Low && !before:
			h.logger.Warn("a disk has little room left", "path", d.Path, "free", d.Free, "disk_low", h.Settings().LowDisk())
		case !d.Low && known && before:
			h.logger.Info("a disk has room again", "path", d.Path, "free", d.Free)
		}
		h.lowDisks[d.Path] = d.Low
	}
	h.lowDisk.Store(low)
}
