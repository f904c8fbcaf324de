package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// locationSpace is where each backend says which board lies where on it. It is in
// the backend's own store, so that hosts with other catalogs and configurations
// see it too.
const locationSpace = "locations"

// The settings of a board that say where its jobs lie, for those drivers that
// have them. Another driver's boards lie where their settings as a whole say.
const (
	namespaceSetting = "namespace"
	pathSetting      = "path"
)

// Location is where the jobs of a board lie in a backend's store.
type Location struct {
	text  string   // canonical
	areas []string // of a path: everything below these is the board's
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
		return Location{text: namespaceSetting + " " + text}
	}
	if len(given) == 0 {
		return Location{text: "board " + key}
	}
	canonical, _ := json.Marshal(given) // maps are written in the order of their keys; it came from JSON
	return Location{text: "settings " + string(canonical)}
}

// pathLocation is a path with the two beside it in which TaskFlow keeps trash
// and entities. It finds these by replacing the last part of the path wherever
// that occurs in it.
func pathLocation(text string) Location {
	p := path.Clean("/" + text)
	base := path.Base(p)
	areas := []string{p}
	for _, beside := range []string{".trash", ".entities"} {
		areas = append(areas, path.Clean(strings.ReplaceAll(p, base, beside)))
	}
	return Location{text: pathSetting + " " + p, areas: areas}
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
	if l.text == o.text {
		return true
	}
	for _, a := range l.areas {
		for _, b := range o.areas {
			if a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/") || strings.HasPrefix(b, strings.TrimSuffix(a, "/")+"/") {
				return true
			}
		}
	}
	mine, isNamespace := strings.CutPrefix(l.text, namespaceSetting+" ")
	other, alsoNamespace := strings.CutPrefix(o.text, namespaceSetting+" ")
	return isNamespace && alsoNamespace && (strings.HasPrefix(mine, other+":") || strings.HasPrefix(other, mine+":"))
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

// Use says which board lies at a location, and how it is served there.
type Use struct {
	Location string            `json:"location"`
	Tenant   string            `json:"tenant"`
	Board    string            `json:"board"`
	Settings map[string]string `json:"settings"` // those that every host must have alike, for people
}

// Occupy makes a location a board's, or refuses, as Precondition, where it is
// another one's or overlaps with one. The board's own settings there may differ
// if no other host serves the board as they were: others says how the other
// hosts that live serve it, by host.
func Occupy(ctx context.Context, docs driver.Documents, l Location, use Use, others map[string]map[string]string) error {
	use.Location = l.text
	for host, settings := range others {
		if difference := differ(use.Settings, settings); difference != "" {
			return job.Errorf(job.Precondition, "the host %s serves this board with other settings: %s; make the two configurations the same", host, difference)
		}
	}
	var err error
	for range tries {
		var present Use
		var version uint64
		if present, version, err = readUse(ctx, docs, l); err != nil {
			return err
		}
		if version != 0 && (present.Tenant != use.Tenant || present.Board != use.Board) {
			return occupied(l, present)
		}
		if version != 0 && maps.Equal(present.Settings, use.Settings) {
			return nil
		}
		if version == 0 {
			if err := checkOverlap(ctx, docs, l, use); err != nil {
				return err
			}
		}
		if err = writeUse(ctx, docs, l, use, version); err == nil && version == 0 {
			return vacateIfOverlapping(ctx, docs, l, use)
		}
		if job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return err
}

func readUse(ctx context.Context, docs driver.Documents, l Location) (use Use, version uint64, err error) {
	doc, err := docs.Get(ctx, driver.Space{Name: locationSpace}, l.key())
	if job.KindOf(err) == job.NotFound {
		return use, 0, nil
	}
	if err == nil {
		err = decode(doc, &use)
	}
	return use, doc.Version, err
}

func writeUse(ctx context.Context, docs driver.Documents, l Location, use Use, version uint64) error {
	data, err := encode(use)
	if err != nil {
		return err
	}
	_, err = docs.Put(ctx, driver.Space{Name: locationSpace}, driver.Document{Name: l.key(), Data: data}, version)
	return err
}

// checkOverlap looks through all places, but not for one that overlaps with
// nothing but itself: a thousand boards that are opened for the first time would
// otherwise read a million documents.
func checkOverlap(ctx context.Context, docs driver.Documents, l Location, use Use) error {
	if _, isNamespace := strings.CutPrefix(l.text, namespaceSetting+" "); !isNamespace && len(l.areas) == 0 {
		return nil
	}
	list, err := docs.List(ctx, driver.Space{Name: locationSpace}, "", 0)
	if err != nil {
		return err
	}
	for _, doc := range list {
		var other Use
		if err := decode(doc, &other); err != nil {
			return err
		}
		if (other.Tenant != use.Tenant || other.Board != use.Board) && l.Overlaps(parseLocation(other.Location)) {
			return occupied(l, other)
		}
	}
	return nil
}

// vacateIfOverlapping looks once more after a location was written: of two that
// overlap and are taken at the same moment, at most one remains.
func vacateIfOverlapping(ctx context.Context, docs driver.Documents, l Location, use Use) error {
	refused := checkOverlap(ctx, docs, l, use)
	if refused == nil {
		return nil
	}
	if err := Vacate(ctx, docs, l, use.Tenant, use.Board); err != nil {
		return err
	}
	return refused
}

// parseLocation is the reverse of String.
func parseLocation(text string) Location {
	if p, ok := strings.CutPrefix(text, pathSetting+" "); ok {
		return pathLocation(p)
	}
	return Location{text: text}
}

// Vacate frees a location that is the board's.
func Vacate(ctx context.Context, docs driver.Documents, l Location, tenant, board string) error {
	present, version, err := readUse(ctx, docs, l)
	if err != nil || version == 0 || present.Tenant != tenant || present.Board != board {
		return err
	}
	return ignore(docs.Delete(ctx, driver.Space{Name: locationSpace}, l.key(), version), job.NotFound)
}

// occupied says to an operator whose a place is. It is not for tenants.
func occupied(l Location, by Use) error {
	return job.Errorf(job.Precondition, "the place %s in the store overlaps with %s of the board %s/%s: one place belongs to one board", l, by.Location, by.Tenant, by.Board)
}

// differ names the settings in which two hosts differ, with both values.
func differ(mine, theirs map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if other, ok := theirs[name]; ok && other != mine[name] {
			list = append(list, fmt.Sprintf("%s is %s here and %s there", name, mine[name], other))
		}
	}
	return strings.Join(list, ", ")
}
