package web

// Sample takes the sample of one more minute, without waiting for it.
func (u *UI) Sample() { u.samples.add(u.host.Depths()) }
