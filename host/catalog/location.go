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
	namespaceSetting   = "namespace"
	noNamespaceSetting = "no_namespace"
	pathSetting        = "path"
)

// Location is where the jobs of a board lie in a backend's store.
type Location struct {
	text   string   // canonical
	own    []string // areas in which everything is the board's; an area ends with a part, before which stand those around it
	shared []string // areas in which it keeps records beside those of other boards
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
	if given[noNamespaceSetting] == true {
		given = map[string]any{noNamespaceSetting: true} // what else is set moves no key
	}
	if len(given) == 0 {
		return newLocation("board " + key)
	}
	canonical, _ := json.Marshal(given) // maps are written in the order of their keys; it came from JSON
	return newLocation("settings " + string(canonical))
}

// newLocation is every location but a path. A namespace has the keys that begin
// with it, a colon and no further part, and those whose further part is boardd: one
// that goes on after a colon in another way, such as octavia:eu beside octavia, has
// none of them.
func newLocation(text string) Location {
	if _, ok := strings.CutPrefix(text, namespaceSetting+" "); !ok {
		return Location{text: text, own: []string{text}}
	}
	area := strings.ReplaceAll(text, ":", between)
	return Location{text: text, own: []string{area + between + leaf, area + between + ownPart}}
}

const (
	between = "\x00"   // between the parts of an area; it occurs in no setting, since stores take no such names
	leaf    = "\x01"   // the part of what lies directly in an area; likewise
	ownPart = "boardd" // begins the names of what drivers keep for boardd in a namespace
)

// pathLocation is a path with the folders beside it: boardd's own for this board,
// and those in which TaskFlow keeps trash and entities, which all boards beside
// this one have in common. TaskFlow finds these by replacing the last part of the
// path wherever that occurs in it.
func pathLocation(text string) Location {
	p := path.Clean("/" + text)
	dir, base := path.Split(p)
	area := func(p string) string {
		return strings.ReplaceAll(strings.TrimSuffix(pathSetting+path.Clean(p), "/"), "/", between)
	}
	return Location{
		text:   pathSetting + " " + p,
		own:    []string{area(p), area(dir + ".boardd/" + base)},
		shared: []string{area(strings.ReplaceAll(p, base, ".trash")), area(strings.ReplaceAll(p, base, ".entities"))},
	}
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
	return hex.EncodeToString(sum[:keySize])
}

const keySize = 16 // bytes of a location's key

// reach says with which other locations one can overlap.
type reach int

const (
	onlyItself reach = iota // it has no areas within others
	onlyChosen              // those that people chose: no two that MakeSettings made overlap
	anybody
)

// reach says with what the place of a board can overlap. Those that MakeSettings makes below
// another root than the usual one are as if they were chosen: that root may lie anywhere.
func (l Location) reach(use *Use) reach {
	name, isNamespace := strings.CutPrefix(l.text, namespaceSetting+" ")
	folder, isPath := strings.CutPrefix(l.text, pathSetting+" ")
	switch {
	case !isNamespace && !isPath:
		return onlyItself
	case isNamespace && name == madeNamespace(use.Tenant, use.Board), isPath && folder == madePath(defaultRoot, use.Tenant, use.Board):
		return onlyChosen
	}
	return anybody
}

// Overlaps reports whether two boards at these places would take each other's
// records for their own.
func (l Location) Overlaps(o Location) bool {
	g := newGround()
	g.add(o, Use{Board: "other"})
	return g.other(l, &Use{Board: "one"}) != nil
}

// defaultRoot is where paths are made on a backend that names no root.
const defaultRoot = "/boardd"

// MakeSettings returns the settings of a board whose place nobody chose, made
// from its tenant's name and its own, so that no two boards share one. The
// namespace is a hash tag of Redis; the path ends in a part that occurs in no
// name, since TaskFlow replaces that part wherever it stands. It lies below the root
// that the backend's settings name, as what else a deployment keeps in that store:
// several deployments in one store have a root each.
func MakeSettings(schema driver.Schema, backend []byte, tenant, board string) ([]byte, error) {
	on := struct{ Root string }{defaultRoot}
	if len(backend) > 0 {
		if err := json.Unmarshal(backend, &on); err != nil {
			return nil, err
		}
	}
	made := map[string]string{}
	for _, f := range schema.Fields {
		switch {
		case f.Name == namespaceSetting && f.Type == driver.String:
			made[f.Name] = madeNamespace(tenant, board)
		case f.Name == pathSetting && f.Type == driver.String:
			made[f.Name] = madePath(on.Root, tenant, board)
		}
	}
	return json.Marshal(made)
}

func madeNamespace(tenant, board string) string { return "boardd:{" + tenant + "/" + board + "}" }

func madePath(root, tenant, board string) string { return root + "/" + tenant + "/" + board + "/Jobs" }

// LocationNamed is the reverse of String.
func LocationNamed(text string) Location {
	if p, ok := strings.CutPrefix(text, pathSetting+" "); ok {
		return pathLocation(p)
	}
	return newLocation(text)
}
