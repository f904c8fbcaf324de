package testserver

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between a client and a server, and can be cut, be slow, or keep
// connections through which nothing comes any more.
type Proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	deaf  bool
	mute  bool
	says  *strings.Replacer // what the server's answers say instead; nil: what they say
	delay time.Duration
	conns map[net.Conn]bool
	group sync.WaitGroup
}

// NewProxy begins to stand before the server at an address, until the test is over.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, to: to, conns: map[net.Conn]bool{}}
	p.group.Go(p.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Sever(true)
		p.group.Wait()
	})
	return p
}

// Addr is where clients find it.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

func (p *Proxy) serve() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuses() { // the server is not to hear of it
			_ = from.Close()
			continue
		}
		to, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
		p.mu.Lock()
		if err != nil || p.cut {
			_ = from.Close()
			if to != nil {
				_ = to.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns[from], p.conns[to] = true, true
		p.mu.Unlock()
		p.group.Go(func() { p.pass(p.told(from), to, &p.mute) })
		p.group.Go(func() { p.pass(to, from, nil) })
	}
}

// told is a client's connection that is told what the server is to say.
func (p *Proxy) told(client net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.says == nil {
		return client
	}
	return otherWords{client, p.says}
}

// otherWords puts other words in the place of some, in what is written at once.
type otherWords struct {
	net.Conn
	says *strings.Replacer
}

func (o otherWords) Write(b []byte) (int, error) {
	_, err := o.says.WriteString(o.Conn, string(b))
	return len(b), err
}

// pass carries bytes until one side ends. While deaf, or silent if that is given, what
// comes is lost.
func (p *Proxy) pass(to, from net.Conn, silent *bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		lost, delay := p.deaf || silent != nil && *silent, p.delay
		p.mu.Unlock()
		time.Sleep(delay) // what comes after it waits too
		if n > 0 && !lost {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Sever ends every connection, and refuses new ones while cut.
func (p *Proxy) Sever(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.end()
}

// Reset ends every connection, whether new ones are refused or not.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
}

// end ends every connection. The caller holds p.mu.
func (p *Proxy) end() {
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// SetDeaf has nothing come through, in either direction, while the connections stay.
func (p *Proxy) SetDeaf(deaf bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = deaf
}

// SetMute has the server's answers not come through.
func (p *Proxy) SetMute(mute bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = mute
}

// Rewrite has the server's answers on new connections say other words in the place of some.
func (p *Proxy) Rewrite(says *strings.Replacer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.says = says
}

// SetDelay has what comes wait for so long, in either direction.
func (p *Proxy) SetDelay(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}
