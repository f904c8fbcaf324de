package api

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/sleep"
)

// lookEvery is how often the files of certificates are looked at: whatever renews
// them need not know of the server.
const lookEvery = 10 * time.Second

// certificates are those that hold now. A connection keeps those that it began
// with.
type certificates struct {
	logger *slog.Logger

	mu    sync.Mutex
	files config.TLS
	seen  [3]time.Time // when the files were last written, as far as known
	now   *tls.Config
}

// newCertificates reads the files, nil for none.
func newCertificates(c *config.TLS, logger *slog.Logger) (*certificates, error) {
	if c == nil {
		return nil, nil
	}
	s := &certificates{logger: logger}
	return s, s.use(*c)
}

// use reads other files, or the same ones anew. After an error what held goes on.
func (s *certificates) use(c config.TLS) error {
	seen := written(c)
	read, err := loadTLS(&c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.seen, s.now = c, seen, read
	return nil
}

// written returns when the files were last changed.
func written(c config.TLS) (at [3]time.Time) {
	for i, path := range []string{c.CertFile, c.KeyFile, c.ClientCAFile} {
		if info, err := os.Stat(path); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

// config is the configuration of a listener, which asks for each connection.
func (s *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.now, nil
		},
	}
}

// watch reads the files anew when they were changed, until ctx ends.
func (s *certificates) watch(ctx context.Context) {
	for sleep.For(ctx, lookEvery) == nil {
		s.look()
	}
}

func (s *certificates) look() {
	s.mu.Lock()
	files, seen := s.files, s.seen
	s.mu.Unlock()
	if written(files) == seen {
		return
	}
	if err := s.use(files); err != nil {
		s.logger.Error("the certificate was changed and cannot be used; the one before it goes on", "error", err)
		return
	}
	s.logger.Info("the certificate was read anew", "file", files.CertFile)
}
