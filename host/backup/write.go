package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// writer makes an archive of the parts that a driver yields.
type writer struct {
	out      *tar.Writer
	manifest *Manifest
	sum      hash.Hash
	left     int64 // of the present file
}

// Write writes a backup to w, at most rate bytes a second, and adds its files to the
// manifest, whose other fields the caller has filled in.
func Write(ctx context.Context, w io.Writer, m *Manifest, parts iter.Seq2[driver.BackupPart, error], rate int64) error {
	m.Format, m.Files = Format, nil
	b := &writer{out: tar.NewWriter(w), manifest: m, sum: sha256.New()}
	begun, sent := time.Now(), int64(0)
	for part, err := range parts {
		if err != nil {
			return err
		}
		if err := b.part(&part); err != nil {
			return err
		}
		sent += int64(len(part.Data))
		due := time.Duration(float64(sent) / float64(rate) * float64(time.Second))
		if err := sleep.For(ctx, due-time.Since(begun)); err != nil {
			return err
		}
	}
	return b.end()
}

// part writes the next part. A driver is a stranger: what it may not yield is refused.
func (b *writer) part(p *driver.BackupPart) error {
	if p.Name != "" {
		if err := b.begin(p); err != nil {
			return err
		}
	}
	if len(b.manifest.Files) == 0 || int64(len(p.Data)) > b.left {
		return wrong("yields more of a file than it said it has")
	}
	b.left -= int64(len(p.Data))
	_, _ = b.sum.Write(p.Data) // never fails
	if _, err := b.out.Write(p.Data); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}

// begin begins a file.
func (b *writer) begin(p *driver.BackupPart) error {
	if err := b.finish(); err != nil {
		return err
	}
	if !fileName.MatchString(p.Name) || p.Name == ManifestFile || p.Size < 0 || slices.ContainsFunc(b.manifest.Files, func(f File) bool { return f.Name == p.Name }) {
		return job.Errorf(job.Internal, "the driver's backup has a file %.80q of %d bytes, which no backup may have", p.Name, p.Size)
	}
	b.manifest.Files = append(b.manifest.Files, File{Name: p.Name, Size: p.Size})
	b.left = p.Size
	b.sum.Reset()
	return b.header(p.Name, p.Size)
}

// finish notes the checksum of the present file.
func (b *writer) finish() error {
	n := len(b.manifest.Files)
	if n == 0 {
		return nil
	}
	if b.left > 0 {
		return wrong("yields less of a file than it said it has")
	}
	b.manifest.Files[n-1].SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	return nil
}

func (b *writer) header(name string, size int64) error {
	h := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: b.manifest.Begun.Truncate(time.Second)}
	if err := b.out.WriteHeader(h); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}

// end writes the manifest.
func (b *writer) end() error {
	if err := b.finish(); err != nil {
		return err
	}
	if len(b.manifest.Files) == 0 {
		return wrong("has no file")
	}
	text, err := json.MarshalIndent(b.manifest, "", "  ")
	if err != nil {
		return &job.Error{Kind: job.Internal, Err: err}
	}
	if err := b.header(ManifestFile, int64(len(text))); err != nil {
		return err
	}
	_, err = b.out.Write(text)
	if err := errors.Join(err, b.out.Close()); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}

func wrong(what string) error { return job.Errorf(job.Internal, "the driver's backup %s", what) }
