package config

import (
	"os"

	"github.com/boardd/boardd/host/pin"
)

// trustedKeys reads the keys with which drivers and policies are signed.
func (l *loader) trustedKeys(s *section) {
	list, ok := s.texts("trusted_keys")
	if !ok || !l.first(s, "trusted_keys") {
		return
	}
	if len(list) == 0 {
		s.wrong("trusted_keys", "the list is empty; leave it out where nothing has to be signed")
	}
	for _, name := range list {
		key, err := pin.ReadKey(resolve(s.file, name))
		if err != nil {
			s.wrong("trusted_keys", "%v", err)
			continue
		}
		l.config.TrustedKeys = append(l.config.TrustedKeys, key)
	}
}

// digest reads the digest of a file; empty: none is given.
func (s *section) digest(name string) string {
	text, ok := s.text(name)
	if !ok {
		return ""
	}
	digest, err := pin.ParseDigest(text)
	if err != nil {
		s.wrong(name, "%v", err)
	}
	return digest
}

// checkSigned demands that each module of a policy block that has no digest is signed,
// where there are trusted keys.
func (l *loader) checkSigned() {
	if len(l.config.TrustedKeys) == 0 {
		return
	}
	for i := range l.config.Policies {
		p := &l.config.Policies[i]
		if p.pinned || p.digest == "" {
			continue
		}
		p.pinned = true
		b, err := p.Read()
		if err == nil {
			err = pin.Signed(p.Path, b, l.config.TrustedKeys)
		}
		if err != nil {
			l.policies[p.Name].section.wrong("path", "%v", err)
		}
	}
}

// PinDriver demands of a backend's driver, which is the program of that path, what the
// configuration says of it: its digest, or that it is signed. From then on no other
// program will do. It says with which setting something is wrong.
func (c *Config) PinDriver(b *Backend, path string) (setting string, err error) {
	if b.SHA256 == "" && len(c.TrustedKeys) == 0 {
		return "", nil
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return "driver", err
	}
	digest, err := pin.Check(path, program, b.SHA256)
	if err != nil {
		return "sha256", err
	}
	if b.SHA256 == "" {
		if err := pin.Signed(path, program, c.TrustedKeys); err != nil {
			return "driver", err
		}
	}
	b.SHA256 = digest
	return "", nil
}
