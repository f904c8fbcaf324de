package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Limits of a parameter's value.
const (
	MaxValueItems = 1024     // of a list or map
	MaxValueText  = 16 << 10 // bytes of one text
)

// ParseValue makes a parameter's value of what JSON or a configuration has for
// it. Nil stays nil.
func ParseValue(t ParameterType, v any) (Value, error) {
	switch t {
	case IntParameter:
		return parseInt(v)
	case FloatParameter:
		return parseFloat(v)
	case BoolParameter:
		if _, ok := v.(bool); v == nil || ok {
			return v, nil
		}
	case StringParameter:
		if s, ok := v.(string); v == nil || ok && len(s) <= MaxValueText {
			return v, nil
		}
		return nil, fmt.Errorf("%.40q: want a text of at most %d bytes", v, MaxValueText)
	case DurationParameter:
		return parseText(v, "90s", time.ParseDuration)
	case TimeParameter:
		return parseText(v, "2030-01-31T09:00:00Z", func(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) })
	case ZoneParameter:
		return parseText(v, "Europe/Berlin", loadZone)
	case ListParameter:
		return parseList(v)
	case MapParameter:
		return parseMap(v)
	}
	return nil, fmt.Errorf("%v (%T): want a %s", v, v, t)
}

func parseInt(v any) (Value, error) {
	switch v := v.(type) {
	case nil, int64:
		return v, nil
	case int:
		return int64(v), nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
	case float64:
		if n := int64(v); float64(n) == v && math.Abs(v) < 1<<53 {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%v: want a whole number", v)
}

func parseFloat(v any) (Value, error) {
	f := math.NaN()
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // absent
	case float64:
		f = v
	case int:
		f = float64(v)
	case int64:
		f = float64(v)
	case json.Number:
		if n, err := v.Float64(); err == nil {
			f = n
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v: want a number", v)
	}
	return f, nil
}

// parseText parses what is written as text, and lets what is parsed already be.
func parseText[T any](v any, example string, parse func(string) (T, error)) (Value, error) {
	switch v := v.(type) {
	case nil, T:
		return v, nil
	case string:
		parsed, err := parse(v)
		if err != nil {
			return nil, fmt.Errorf("%.40q: want something like %q (%w)", v, example, err)
		}
		return parsed, nil
	}
	return nil, fmt.Errorf("%v: want a text like %q", v, example)
}

// loadZone refuses the name that means whatever this machine is set to: two
// servers would not agree.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is different on each machine", name)
	}
	return time.LoadLocation(name)
}

func parseList(v any) (Value, error) {
	var items []string
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // absent
	case []string:
		items = v
	case []any:
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("item %d is %v: want a text", i, item)
			}
			items = append(items, s)
		}
	default:
		return nil, fmt.Errorf("%v: want a list of texts", v)
	}
	if items == nil {
		items = []string{}
	}
	return items, bounded(len(items), slices.Values(items))
}

func parseMap(v any) (Value, error) {
	entries := map[string]string{}
	switch v := v.(type) {
	case nil:
		return nil, nil //nolint:nilnil // absent
	case map[string]string:
		entries = v
	case map[string]any:
		for k, item := range v {
			switch item.(type) {
			case string, json.Number, int, int64, float64, bool:
				entries[k] = fmt.Sprint(item)
			default:
				return nil, fmt.Errorf("%q is %v: want a text or a number", k, item)
			}
		}
	default:
		return nil, fmt.Errorf("%v: want a map of texts", v)
	}
	if err := bounded(len(entries), maps.Keys(entries)); err != nil {
		return nil, err
	}
	return entries, bounded(len(entries), maps.Values(entries))
}

func bounded(n int, texts func(func(string) bool)) error {
	if n > MaxValueItems {
		return fmt.Errorf("%d items are too many: want at most %d", n, MaxValueItems)
	}
	for s := range texts {
		if len(s) > MaxValueText {
			return fmt.Errorf("%.40q... has %d bytes: want at most %d", s, len(s), MaxValueText)
		}
	}
	return nil
}
