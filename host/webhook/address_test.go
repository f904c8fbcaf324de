package webhook

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// TestAddresses: of what no webhook may reach by itself, and may if the configuration says so.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"127.0.0.1", "127.8.9.10", "::1", // loopback
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1", // private, unique-local
		"169.254.169.254", "fe80::1", "fe80::1%eth0", "fec0::1", // link-local, site-local
		"0.0.0.0", "0.1.2.3", "::", // unspecified
		"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1", // multicast
		"255.255.255.255", "240.0.0.1", // broadcast, reserved
		"100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "192.88.99.1",
		"2001:db8::1", "2001::1", "2002:7f00:1::", "3fff::1", "100::1", "64:ff9b:1::1", "::7f00:1", "4000::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", // those of version 4 in version 6
	} {
		at := netip.MustParseAddr(text)
		if err := checkAddress(at, nil, false); err == nil {
			t.Errorf("%s may be reached", text)
		}
		plain := at.Unmap().WithZone("")
		if err := checkAddress(at, []netip.Prefix{netip.PrefixFrom(plain, plain.BitLen())}, true); err != nil {
			t.Errorf("%s is allowed, and may not be reached: %v", text, err)
		}
	}
	for _, text := range []string{"1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "223.255.255.255", "2606:4700::1111", "64:ff9b::1.1.1.1", "::ffff:1.1.1.1"} {
		at := netip.MustParseAddr(text)
		if err := checkAddress(at, nil, false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if err := checkAddress(at, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, true); err == nil {
			t.Errorf("%s may be reached in the clear", text)
		}
	}
}

// TestCheckURL: what is wrong with an address is said before anything is sent to it.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for text, problem := range map[string]string{
		"https://example.com/hook?a=b":                          "",
		"https://1.1.1.1/":                                      "",
		"https://[2606:4700::1111]:8443/":                       "",
		"http://example.com/":                                   "want https",
		"ftp://example.com/":                                    `got "ftp"`,
		"https://":                                              "is not an address",
		"example.com/hook":                                      "is not an address",
		"https://me:word@example.com/":                          "would stand in logs",
		"https://example.com/#part":                             "is not sent",
		"https://127.0.0.1/":                                    "not an address of the internet",
		"https://[::ffff:10.0.0.1]/":                            "not an address of the internet",
		"https://169.254.169.254/latest/meta-data/":             "not an address of the internet",
		"https://example.com/" + strings.Repeat("x", MaxURL):    "at most 2048 bytes",
		"https://example.com/" + strings.Repeat("x", MaxURL-20): "",
	} {
		if err := checkURL(text, nil); (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v, want %q", text, err, problem)
		}
	}
	if err := checkURL("http://127.0.0.1:8080/", here); err != nil {
		t.Error(err)
	}
	if err := checkURL("http://10.0.0.1/", here); err == nil {
		t.Error("another network is reached in the clear")
	}
}

// TestDial: names are looked up, and what they lead to is looked at as well; and a redirect is
// not followed, wherever it leads.
func TestDial(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer receiver.Close()
	u, err := url.Parse(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	byName := "http://localhost:" + u.Port() + "/hook"
	send := func(to string, networks ...netip.Prefix) error {
		client := newClient(&Hook{URL: to, Networks: networks, Timeout: MinTimeout})
		defer client.CloseIdleConnections()
		answer, err := client.Post(to, "application/json", strings.NewReader("{}"))
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	for _, to := range []string{receiver.URL, byName, strings.Replace(byName, "http:", "https:", 1)} {
		if err := send(to); err == nil || !strings.Contains(err.Error(), "not an address of the internet") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if err := send(byName, netip.MustParsePrefix("10.0.0.0/8")); err == nil {
		t.Error("a network that was not allowed was reached")
	}
	for _, to := range []string{"http://1.1.1.1/", "HTTP://1.1.1.1/"} {
		if err := send(to, netip.MustParsePrefix("10.0.0.0/8")); err == nil || !strings.Contains(err.Error(), "http is only for those") {
			t.Errorf("%s is asked in the clear: %v", to, err)
		}
	}
	if len(asked) != 0 {
		t.Fatalf("the receiver was asked for %s", <-asked)
	}
	if err := send(byName, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "/hook" || len(asked) != 0 {
		t.Errorf("asked for %s, and %d times more", got, len(asked))
	}
}
