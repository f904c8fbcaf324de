package guest

import "unsafe"

// Hash is FNV-1a of 32 bits, which spreads what is alike. Eight bytes are read at
// once: each read is a check of where the memory ends.
func Hash(s string) uint32 {
	const prime = 16777619
	h, rest := uint32(2166136261), unsafe.Slice(unsafe.StringData(s), len(s))
	for ; len(rest) >= 8; rest = rest[8:] {
		low := get64(rest, 0)
		high := low >> 32
		h = (h ^ uint32(low)&0xff) * prime
		h = (h ^ uint32(low)>>8&0xff) * prime
		h = (h ^ uint32(low)>>16&0xff) * prime
		h = (h ^ uint32(low)>>24) * prime
		h = (h ^ uint32(high)&0xff) * prime
		h = (h ^ uint32(high)>>8&0xff) * prime
		h = (h ^ uint32(high)>>16&0xff) * prime
		h = (h ^ uint32(high)>>24) * prime
	}
	for _, c := range rest {
		h = (h ^ uint32(c)) * prime
	}
	return h
}
