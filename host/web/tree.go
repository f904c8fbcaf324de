package web

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Limits on the tree that details are shown as. What is beyond them is left out,
// and the page says so.
const (
	maxTreeNodes = 5000
	maxTreeDepth = 50
	maxTreeText  = 4096 // bytes of one string
)

// node is one value of details, with its name in what is around it.
type node struct {
	Name     string
	Value    string // of a plain value, as JSON
	Sort     string // object, array, or empty for a plain value
	Count    int    // members
	Children []*node
	Cut      bool // there is more than is shown
}

// tree makes nodes of JSON text, which was checked when it was posted.
func tree(text []byte) *node {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	t := &treeReader{decoder: d, left: maxTreeNodes}
	root, err := t.value("", 0)
	if err != nil {
		return &node{Value: "these details cannot be read as JSON: " + err.Error(), Cut: true}
	}
	return root
}

type treeReader struct {
	decoder *json.Decoder
	left    int
}

func (t *treeReader) value(name string, depth int) (*node, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, err
	}
	t.left--
	n := &node{Name: name}
	switch v := token.(type) {
	case json.Delim:
		n.Sort = "object"
		if v == '[' {
			n.Sort = "array"
		}
		return n, t.members(n, depth)
	case string:
		if len(v) > maxTreeText {
			v, n.Cut = v[:maxTreeText], true
		}
		quoted, err := json.Marshal(v)
		n.Value = string(quoted)
		return n, err
	case nil:
		n.Value = "null"
	default:
		n.Value = fmt.Sprint(v)
	}
	return n, nil
}

// members reads what is in an object or array up to its end, and keeps what fits.
func (t *treeReader) members(n *node, depth int) error {
	for t.decoder.More() {
		name := fmt.Sprint(n.Count)
		if n.Sort == "object" {
			key, err := t.decoder.Token()
			if err != nil {
				return err
			}
			name = fmt.Sprint(key)
		}
		n.Count++
		child, err := t.value(name, depth+1)
		if err != nil {
			return err
		}
		if t.left < 0 || depth >= maxTreeDepth {
			n.Cut = true
			continue
		}
		n.Children = append(n.Children, child)
	}
	_, err := t.decoder.Token()
	return err
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
