package filter

import (
	"cmp"
	"strconv"
	"strings"
)

// number is a decimal number as it was written, so that two that differ in the
// twentieth digit are not taken for the same. The zero value is 0.
type number struct {
	negative bool
	size     int // the power of ten of the first digit that is not 0, plus 1
	digits   [2]string
}

// maxExponent is the length of the longest exponent, in digits.
const maxExponent = 6

// readNumber reads digits with or without a sign, a fraction and an exponent. Not more:
// "inf", "nan" and "0x10" are names as good as any.
func readNumber(text string) (n number, ok bool) {
	if text == "" {
		return n, false
	}
	if text[0] == '-' || text[0] == '+' {
		n.negative, text = text[0] == '-', text[1:]
	}
	exponent := 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		power := strings.TrimPrefix(text[at+1:], "+")
		bare := strings.TrimPrefix(power, "-")
		if !isDigits(bare) || bare == "" || len(bare) > maxExponent {
			return number{}, false
		}
		exponent, _ = strconv.Atoi(power)
		text = text[:at]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" && fraction == "" || !isDigits(whole) || !isDigits(fraction) {
		return number{}, false
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	n.size = len(whole) + exponent
	if whole == "" {
		small := strings.TrimLeft(fraction, "0")
		n.size = exponent - (len(fraction) - len(small))
		fraction = small
	}
	if whole == "" && fraction == "" {
		return number{}, true
	}
	n.digits = [2]string{whole, fraction}
	return n, true
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// digit returns the digit at a place, from the first one that is not 0.
func (n *number) digit(at int) byte {
	for _, part := range n.digits {
		if at < len(part) {
			return part[at]
		}
		at -= len(part)
	}
	return '0'
}

func (n *number) length() int { return len(n.digits[0]) + len(n.digits[1]) }

// sign is -1, 0 or 1.
func (n *number) sign() int {
	switch {
	case n.length() == 0:
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// compare returns how n stands to another number: -1, 0 or 1.
func (n *number) compare(o *number) int {
	sign := n.sign()
	if sign != o.sign() || sign == 0 {
		return cmp.Compare(sign, o.sign())
	}
	if n.size != o.size {
		return sign * cmp.Compare(n.size, o.size)
	}
	for at := range max(n.length(), o.length()) {
		if a, b := n.digit(at), o.digit(at); a != b {
			return sign * cmp.Compare(a, b)
		}
	}
	return 0
}
