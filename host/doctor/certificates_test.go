package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/doctor"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestCertificatesOfADeployment looks at certificates that end tomorrow, and at what is
// none.
func TestCertificatesOfADeployment(t *testing.T) {
	t.Parallel()
	c := testserver.NewCertificates(t)
	nonsense := filepath.Join(t.TempDir(), "nonsense.pem")
	if err := os.WriteFile(nonsense, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		tls  *config.TLS
		want []string
	}{
		{nil, nil},
		{&config.TLS{CertFile: c.ServerCert}, []string{"warning certificate-expires"}},
		{&config.TLS{CertFile: c.ServerCert, ClientCAFile: c.CA}, []string{"warning certificate-expires", "warning certificate-expires"}},
		{&config.TLS{CertFile: nonsense}, []string{"problem certificate-cannot-be-read"}},
		{&config.TLS{CertFile: c.ServerKey}, []string{"problem certificate-cannot-be-read"}},
		{&config.TLS{CertFile: filepath.Join(t.TempDir(), "none")}, []string{"problem certificate-cannot-be-read"}},
	} {
		var got []string
		err := doctor.Examine(t.Context(), host.Config{Config: config.Config{TLS: x.tls}}, true, func(config.Board) bool { return true },
			func(f doctor.Finding) { got = append(got, driver.Severity.String(f.Severity)+" "+f.Code) })
		if err != nil || !slices.Equal(got, x.want) {
			t.Errorf("%+v: %v, %v, want %v", x.tls, got, err, x.want)
		}
	}
}
