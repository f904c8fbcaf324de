package store

import (
	"encoding/binary"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A packer appends what struct.pack would: big-endian numbers and counted text.
type packer struct{ b []byte }

func (p *packer) u8(n byte)     { p.b = append(p.b, n) }
func (p *packer) u16(n int)     { p.b = binary.BigEndian.AppendUint16(p.b, uint16(n)) }
func (p *packer) u64(n uint64)  { p.b = binary.BigEndian.AppendUint64(p.b, n) }
func (p *packer) raw(s string)  { p.b = append(p.b, s...) }
func (p *packer) text(s string) { p.u16(len(s)); p.raw(s) }

func (p *packer) blob(data []byte) {
	p.b = binary.BigEndian.AppendUint32(p.b, uint32(len(data)))
	p.b = append(p.b, data...)
}

func (p *packer) flag(on bool) {
	if on {
		p.u8(1)
	} else {
		p.u8(0)
	}
}

func packToken(t job.Token) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 32), t.Generation)
	b = binary.BigEndian.AppendUint64(b, t.Epoch)
	return append(b, t.Nonce[:]...)
}

// lease appends a lease in milliseconds; none is 0.
func (p *packer) lease(d time.Duration, none bool) {
	if none {
		d = 0
	}
	p.u64(uint64(d / time.Millisecond))
}

func (p *packer) rates(list []driver.Rate) {
	p.u16(len(list))
	for i := range list {
		p.text(driver.RatePrefix + list[i].Key)
		p.u64(uint64(list[i].Per / time.Microsecond)) //nolint:gosec // checked
		p.u64(uint64(list[i].Max))                    //nolint:gosec // checked
	}
}

func (p *packer) limits(list []driver.Limit) {
	p.u16(len(list))
	for i := range list {
		l := &list[i]
		p.text(l.Key)
		p.u64(uint64(max(l.Weight, 1)))
		p.u64(uint64(l.Max))
	}
}

func (p *packer) keys(list []driver.Key) {
	p.u8(byte(len(list)))
	for i := range list {
		k := &list[i]
		p.text(k.Name)
		p.flag(k.Open)
		p.u64(uint64((k.For + time.Microsecond - 1) / time.Microsecond))
		p.u64(k.Number)
	}
}
