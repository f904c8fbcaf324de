package history

import (
	"encoding/json"
	"fmt"
	"os"
)

// Write writes a history to a file, as JSON.
func (h *History) Write(path string) error {
	text, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return fmt.Errorf("the history: %w", err)
	}
	return os.WriteFile(path, text, 0o600)
}

// Read reads a history that Write has written.
func Read(path string) (*History, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var h History
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &h, nil
}
