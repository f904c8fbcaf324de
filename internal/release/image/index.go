package main

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	source  = "https://github.com/boardd/boardd"
	port    = "7422/tcp"
	dataDir = "/var/lib/boardd"
)

// about is what labels and annotations say of an image.
func (r release) about() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         "boardd",
		"org.opencontainers.image.description":   "A jobboard server: jobs are posted on a board, and workers claim, consume or give them back.",
		"org.opencontainers.image.version":       r.version,
		"org.opencontainers.image.revision":      r.commit,
		"org.opencontainers.image.created":       r.made.Format(time.RFC3339),
		"org.opencontainers.image.source":        source,
		"org.opencontainers.image.documentation": source + "/blob/main/docs/operating.md",
		"org.opencontainers.image.licenses":      "Apache-2.0",
	}
}

// index has an image for each architecture.
func (r release) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range slices.Sorted(maps.Keys(r.unpacked)) {
		image, err := r.image(architecture)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return mutate.Annotations(index, r.about()).(v1.ImageIndex), nil
}

// image has the files of a release and says how they are run.
func (r release) image(architecture string) (v1.Image, error) {
	files, err := newTree(r.unpacked[architecture])
	if err != nil {
		return nil, err
	}
	text, err := files.layer(r.made)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: architecture, Created: v1.Time{Time: r.made}, RootFS: v1.RootFS{Type: "layers"}, Config: r.config()})
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.made}, CreatedBy: "scripts/release.sh " + r.version}})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return mutate.Annotations(image, r.about()).(v1.Image), nil
}

// config says how a container of the image is run, where nobody says otherwise.
func (r release) config() v1.Config {
	return v1.Config{
		User:         "65532:65532",
		Env:          []string{"PATH=/usr/bin"},
		Entrypoint:   []string{"/usr/bin/boardd"},
		Cmd:          []string{"serve", "--config", "/etc/boardd", "--log-format", "json"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{port: {}},
		Volumes:      map[string]struct{}{dataDir: {}},
		StopSignal:   "SIGTERM",
		Labels:       r.about(),
		Healthcheck: &v1.HealthConfig{ // Docker's, and podman's; OCI has none
			Test: []string{"CMD", "/usr/bin/boardd", "ready"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
	}
}
