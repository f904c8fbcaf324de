package config

import (
	"encoding/hex"
	"strings"

	"github.com/boardd/boardd/host/tenant"
)

// tokenPlace is where a token of a file stands, and what it is bound to.
type tokenPlace struct {
	section *section
	tenant  string
	boards  []string
}

func (l *loader) token(s *section, of string) {
	t := tenant.Token{Name: s.label, Tenant: of, Roles: s.roles(), Certificate: s.certificateName()}
	if t.Certificate == "" {
		t.Digest = s.secret()
	}
	t.Boards, _ = s.texts("boards")
	if s.has("boards") && len(t.Boards) == 0 {
		s.wrong("boards", "the list is empty; leave it out for every board of the tenant")
	}
	l.config.Tokens = append(l.config.Tokens, t)
	l.tokens = append(l.tokens, tokenPlace{section: s, tenant: of, boards: t.Boards})
	s.close("token", of+"/"+s.label)
}

// roles reads the roles of a token.
func (s *section) roles() []tenant.Role {
	names, ok := s.texts("roles")
	if ok && len(names) == 0 || !s.has("roles") {
		s.wrong("roles", "want at least one role")
	}
	var roles []tenant.Role
	for _, name := range names {
		role, err := tenant.ParseRole(clip(name))
		if err != nil {
			s.wrong("roles", "%v", err)
			continue
		}
		roles = append(roles, role)
	}
	return roles
}

// certificateName reads the name in a client's certificate that stands in place of
// a secret.
func (s *section) certificateName() string {
	name, ok := s.text("certificate")
	if !ok {
		return ""
	}
	s.settings = append(s.settings, "secret", "secret_sha256")
	switch {
	case s.has("secret") || s.has("secret_sha256"):
		s.wrong("certificate", "the token has a secret already; give one of the two")
	case name == "" || len(name) > maxCertificateName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
		s.wrong("certificate", "want a DNS name or URI of 1 to %d characters that stands in the certificate", maxCertificateName)
	}
	return name
}

const maxCertificateName = 2048

// secret reads the secret of a token, or its digest. No message repeats it.
func (s *section) secret() tenant.Digest {
	plain, isPlain := s.text("secret")
	hashed, isHashed := s.text("secret_sha256")
	switch {
	case s.has("secret") && s.has("secret_sha256"):
		s.wrong("secret_sha256", "the token has a secret already; give one of the two")
	case isPlain:
		if err := tenant.CheckSecret(plain, s.loader.source.Dev); err != nil {
			s.wrong("secret", "%v", err)
		}
		return tenant.DigestOf(plain)
	case isHashed:
		var digest tenant.Digest
		raw, err := hex.DecodeString(hashed)
		if err != nil || copy(digest[:], raw) != len(digest) || len(raw) != len(digest) {
			s.wrong("secret_sha256", "want the SHA-256 of the secret as 64 hexadecimal digits: printf %%s SECRET | sha256sum")
		}
		return digest
	case !s.has("secret") && !s.has("secret_sha256"):
		s.wrong("secret", `it is missing; take it from the environment or a file: secret = env("NAME")`)
	}
	return tenant.Digest{}
}
