package guest

// Hash is FNV-1a of 32 bits, which spreads what is alike. Eight bytes are read at
// once: each read is a check of where the memory ends. It counts in 64 bits, of
// which the lower half is the same, since all values of a module have as many.
func Hash(s string) uint32 {
	const prime = 16777619
	h, at := uint64(2166136261), 0
	for ; at <= len(s)-8; at += 8 {
		b := text64(s, at)
		h = (h ^ b&0xff) * prime
		h = (h ^ b>>8&0xff) * prime
		h = (h ^ b>>16&0xff) * prime
		h = (h ^ b>>24&0xff) * prime
		h = (h ^ b>>32&0xff) * prime
		h = (h ^ b>>40&0xff) * prime
		h = (h ^ b>>48&0xff) * prime
		h = (h ^ b>>56) * prime
	}
	for ; at < len(s); at++ {
		h = (h ^ uint64(s[at])) * prime
	}
	return uint32(h)
}
