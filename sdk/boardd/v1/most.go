package boarddv1

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits on the lists and maps of a request. Readers refuse what is past them at
// the first item too many, so that a small request can't become a large message.
const (
	MaxItems    = 1 << 16 // in all lists of a request together
	DefaultMost = 1000    // in a list whose field doesn't say otherwise
)

// Most returns how many items a list or map has at most in a request.
func Most(f protoreflect.FieldDescriptor) int {
	if most, _ := proto.GetExtension(f.Options(), E_Most).(int32); most > 0 {
		return int(most)
	}
	return DefaultMost
}
