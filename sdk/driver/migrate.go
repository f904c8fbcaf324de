package driver

// A Migration is what makes the tables of a store fit a program, or has made them so.
type Migration struct {
	From, To int    // versions of the tables; 0: there are none. Equal: there is nothing to do
	Script   string // what does it, as the store's own client takes it; empty: nothing
}
