//go:build !linux

package embedded

func systemClock() clock { return processClock() }
