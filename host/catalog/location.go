package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"path"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
)

// The settings of a board that say where its jobs lie, for those drivers that
// have them. Another driver's boards lie where their settings as a whole say.
const (
	namespaceSetting = "namespace"
	pathSetting      = "path"
)

// Location is where the jobs of a board lie in a backend's store.
type Location struct {
	text  string   // canonical
	areas []string // everything in these is the board's; an area ends with a part, before which stand those around it
}

// LocationOf returns where a board lies. The key is the board's, which is where
// it lies with a driver that needs no settings.
func LocationOf(settings []byte, key string) Location {
	var given map[string]any
	if json.Unmarshal(settings, &given) != nil {
		given = nil // the driver's schema says what is wrong with it
	}
	if text, ok := given[pathSetting].(string); ok && text != "" {
		return pathLocation(text)
	}
	if text, ok := given[namespaceSetting].(string); ok && text != "" {
		return newLocation(namespaceSetting + " " + text)
	}
	if len(given) == 0 {
		return newLocation("board " + key)
	}
	canonical, _ := json.Marshal(given) // maps are written in the order of their keys; it came from JSON
	return newLocation("settings " + string(canonical))
}

// newLocation is every location but a path. Of namespaces, one lies in another that
// it begins with, up to a colon; the others have nothing around them.
func newLocation(text string) Location {
	area := text
	if _, ok := strings.CutPrefix(text, namespaceSetting+" "); ok {
		area = strings.ReplaceAll(text, ":", between)
	}
	return Location{text: text, areas: []string{area}}
}

// between stands between the parts of an area. It occurs in no setting: stores take
// no such names.
const between = "\x00"

// pathLocation is a path with the two beside it in which TaskFlow keeps trash
// and entities. It finds these by replacing the last part of the path wherever
// that occurs in it.
func pathLocation(text string) Location {
	p := path.Clean("/" + text)
	base := path.Base(p)
	l := Location{text: pathSetting + " " + p}
	for _, part := range []string{base, ".trash", ".entities"} {
		area := pathSetting + path.Clean(strings.ReplaceAll(p, base, part))
		l.areas = append(l.areas, strings.ReplaceAll(strings.TrimSuffix(area, "/"), "/", between))
	}
	return l
}

// enclosing goes through the areas around an area.
func enclosing(area string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := strings.LastIndex(area, between); i >= 0; i = strings.LastIndex(area[:i], between) {
			if !yield(area[:i]) {
				return
			}
		}
	}
}

// String returns the location for people.
func (l Location) String() string { return l.text }

// key is the name of the location's document: paths have characters that not
// every store takes in a name.
func (l Location) key() string {
	sum := sha256.Sum256([]byte(l.text))
	return hex.EncodeToString(sum[:16])
}

// Overlaps reports whether two boards at these places would see each other's
// records.
func (l Location) Overlaps(o Location) bool {
	g := ground{}
	g.add(o, Use{Board: "other"})
	return g.other(l, &Use{Board: "one"}) != nil
}

// MakeSettings returns the settings of a board whose place nobody chose, made
// from its tenant's name and its own, so that no two boards share one. The
// namespace is a hash tag of Redis; the path ends in a part that occurs in no
// name, since TaskFlow replaces that part wherever it stands.
func MakeSettings(schema driver.Schema, tenant, board string) ([]byte, error) {
	made := map[string]string{}
	for _, f := range schema.Fields {
		switch {
		case f.Name == namespaceSetting && f.Type == driver.String:
			made[f.Name] = "boardd:{" + tenant + "/" + board + "}"
		case f.Name == pathSetting && f.Type == driver.String:
			made[f.Name] = "/boardd/" + tenant + "/" + board + "/Jobs"
		}
	}
	return json.Marshal(made)
}

// parseLocation is the reverse of String.
func parseLocation(text string) Location {
	if p, ok := strings.CutPrefix(text, pathSetting+" "); ok {
		return pathLocation(p)
	}
	return newLocation(text)
}
