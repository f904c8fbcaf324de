package driver

import "context"

// A Measurer is a Driver whose store tells how much it holds. boardd asks it in the place of
// Health, about once a second. A driver need not implement it.
type Measurer interface {
	// Measure is Health, and says how much the store holds, with QuotaExceeded as well. What
	// the store does not tell, or not now, is no error: it is left out. A figure that is dear
	// to ask for may be some seconds old.
	Measure(ctx context.Context) (Usage, error)
}

// Usage is how much a store holds, with all that lies there beside boards. Of a store of several
// servers it is how full the fullest is, since boards there have to stay within that.
type Usage struct {
	Used  int64 // bytes, at least those of what boards keep there; 0: not known
	Limit int64 // bytes, at which the store is full; 0: there is none, or it is not known
}

// Fuller reports whether u is nearer to its limit than o, or holds more where one has none.
func (u Usage) Fuller(o Usage) bool {
	if u.Limit > 0 && o.Limit > 0 {
		return float64(u.Used)/float64(u.Limit) > float64(o.Used)/float64(o.Limit)
	}
	if (u.Limit > 0) != (o.Limit > 0) {
		return u.Limit > 0
	}
	return u.Used > o.Used
}
