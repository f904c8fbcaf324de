package policy

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// moduleHead is how a core WebAssembly module begins.
const moduleHead = "\x00asm\x01\x00\x00\x00"

// AddManifest appends a manifest to a module as its custom section, in place of
// one that it has.
func AddManifest(module, manifest []byte) ([]byte, error) {
	if _, err := ParseManifest(manifest); err != nil {
		return nil, err
	}
	out := []byte(moduleHead)
	err := eachSection(module, func(id byte, name string, whole, _ []byte) error {
		if id != 0 || name != abi.Section {
			out = append(out, whole...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	body := binary.AppendUvarint(nil, uint64(len(abi.Section)))
	body = append(append(body, abi.Section...), manifest...)
	out = append(out, 0)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...), nil
}

// FindManifest returns the manifest that a module carries.
func FindManifest(module []byte) (text []byte, err error) {
	err = eachSection(module, func(id byte, name string, _, body []byte) error {
		if id != 0 || name != abi.Section {
			return nil
		}
		if text != nil {
			return job.Errorf(job.Invalid, "the module has two custom sections %q: want one", abi.Section)
		}
		text = body
		return nil
	})
	if err == nil && text == nil {
		err = job.Errorf(job.Invalid, "the module has no manifest: want a custom section %q", abi.Section)
	}
	return text, err
}

// eachSection shows the sections of a module: whole is all of it, body what
// follows its name.
func eachSection(module []byte, visit func(id byte, name string, whole, body []byte) error) error {
	if len(module) < len(moduleHead) || string(module[:4]) != moduleHead[:4] {
		return job.Errorf(job.Invalid, "this is no WebAssembly module: it does not begin with \\0asm")
	}
	if string(module[:8]) != moduleHead {
		if module[4] == 0x0d && module[6] == 1 {
			return job.Errorf(job.Invalid, "this is a WebAssembly component: build a core module")
		}
		return job.Errorf(job.Invalid, "the module is of version %d: want 1", binary.LittleEndian.Uint32(module[4:]))
	}
	for at := len(moduleHead); at < len(module); {
		size, n := binary.Uvarint(module[at+1:])
		start := at + 1 + n
		if n <= 0 || n > 5 || size > uint64(len(module)-start) {
			return job.Errorf(job.Invalid, "offset %d: section %d is longer than the module", at, module[at])
		}
		end := start + int(size)
		name, body, err := sectionName(module[at], module[start:end])
		if err != nil {
			return job.Errorf(job.Invalid, "offset %d: %s", at, err)
		}
		if err := visit(module[at], name, module[at:end], body); err != nil {
			return err
		}
		at = end
	}
	return nil
}

func sectionName(id byte, content []byte) (name string, body []byte, err error) {
	if id != 0 {
		return "", content, nil
	}
	size, n := binary.Uvarint(content)
	if n <= 0 || size > uint64(len(content)-n) {
		return "", nil, fmt.Errorf("the name of a custom section is longer than the section")
	}
	return string(content[n : n+int(size)]), content[n+int(size):], nil
}
