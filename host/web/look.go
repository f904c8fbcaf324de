package web

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// look is how somebody wants pages to look. It is kept in a cookie of its own and not with
// the visit: it holds before signing in, and the next day.
type look struct {
	Theme string // "": as the browser says
	Zone  string // of times; "": the browser's
	Keys  string // shortcuts of one key; "": they work
}

// lookChoices are the values that each part of a look may have.
var lookChoices = struct{ theme, zone, keys []string }{
	theme: []string{"", "light", "dark"}, zone: []string{"", "utc"}, keys: []string{"", "off"},
}

const (
	lookCookie = "boardd-look"
	lookKept   = 365 * 24 * time.Hour
)

// lookOf reads the cookie. What is in none of the choices counts as not said.
func lookOf(r *http.Request) look {
	cookie, err := r.Cookie(lookCookie)
	if err != nil {
		return look{}
	}
	parts := strings.Split(cookie.Value, ".")
	if len(parts) != 3 {
		return look{}
	}
	var l look
	l.set("theme", parts[0])
	l.set("zone", parts[1])
	l.set("keys", parts[2])
	return l
}

// set changes one part, if there is such a choice.
func (l *look) set(part, choice string) {
	for _, p := range []struct {
		name    string
		choices []string
		value   *string
	}{{"theme", lookChoices.theme, &l.Theme}, {"zone", lookChoices.zone, &l.Zone}, {"keys", lookChoices.keys, &l.Keys}} {
		if p.name == part && slices.Contains(p.choices, choice) {
			*p.value = choice
		}
	}
}

// setLook changes the parts of the look that the form names, and goes back to the page that
// it stands on. Nothing of it is a change that others see.
func (u *UI) setLook(w http.ResponseWriter, r *http.Request, _ *visit) {
	l := lookOf(r)
	for part := range r.PostForm {
		l.set(part, r.PostForm.Get(part))
	}
	http.SetCookie(w, &http.Cookie{
		Name: lookCookie, Value: strings.Join([]string{l.Theme, l.Zone, l.Keys}, "."), Path: "/", MaxAge: int(lookKept / time.Second),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, here(r.PostForm.Get("back")), http.StatusSeeOther)
}
