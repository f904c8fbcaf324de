package webhook

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestSign signs what the libraries of Standard Webhooks sign in their own tests.
func TestSign(t *testing.T) {
	t.Parallel()
	secrets, err := ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSecrets: each of several secrets signs, and what is none is refused without being repeated.
func TestSecrets(t *testing.T) {
	t.Parallel()
	of := func(n int) string {
		return secretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", n)))
	}
	two, err := ParseSecrets(of(MinSecret) + "\n" + of(MaxSecret) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if list := strings.Fields(two.sign("id", time.Unix(1, 0), nil)); len(list) != 2 || list[0] == list[1] {
		t.Errorf("want a signature of each: %v", list)
	}
	if text := fmt.Sprintf("%v %+v %#v", two, two, two); strings.Contains(text, "115") {
		t.Errorf("a secret is shown: %s", text)
	}
	for name, text := range map[string]string{
		"none": " ", "too many": strings.Repeat(of(MinSecret)+" ", MaxSecrets+1), "short": of(MinSecret - 1), "long": of(MaxSecret + 1),
		"no prefix": strings.TrimPrefix(of(32), secretPrefix), "not base64": secretPrefix + "geheim!",
	} {
		_, err := ParseSecrets(text)
		if job.KindOf(err) != job.Invalid || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseSecrets(f *testing.F) {
	f.Add("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_x")
	f.Fuzz(func(t *testing.T, text string) {
		secrets, err := ParseSecrets(text)
		if (err == nil) != (len(secrets) > 0) {
			t.Fatal(secrets, err)
		}
	})
}
