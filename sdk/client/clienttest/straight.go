package clienttest

import (
	"context"
	"errors"
	"fmt"
)

// enough is how many answers name an address until a worker that would call it has done so.
const enough = 20

// straight: the answers say where the board is to be called, and there it is called, if that
// is an address that may be trusted with the token and is well.
func straight(ctx context.Context, s *stage) error {
	var doors [5]*door
	for i := range doors {
		d, err := newDoor(s.server.addr, i == 0)
		if err != nil {
			return err
		}
		defer d.close()
		doors[i] = d
	}
	front := doors[0]
	s.known = []*line{front.line}
	if err := s.start(adminToken); err != nil {
		return err
	}
	if err := s.untempted(ctx, front, doors[1]); err != nil {
		return err
	}
	if err := s.unhurried(ctx, front, doors[2]); err != nil {
		return err
	}
	return s.followed(ctx, front, doors[3], doors[4])
}

// untempted has answers name addresses that a server must not name, each with the host and
// port of a door that would serve.
func (s *stage) untempted(ctx context.Context, front, trap *door) error {
	at := trap.addr
	front.tell("http://somebody@"+at, "http://"+at+"/boards", "http://"+at+"?a=b", "gopher://"+at, at)
	tempted := func() bool { return trap.state().calls > 0 }
	if err := s.working(ctx, front, func() bool { return tempted() || front.state().told >= enough }); err != nil {
		return err
	}
	if tempted() {
		return errors.New("it called an address in Boardd-Public that has more or less than http:// or https://, a host and a port: such a one is to be left out")
	}
	return nil
}

// unhurried has answers name a server that is not well.
func (s *stage) unhurried(ctx context.Context, front, sick *door) error {
	sick.sicken()
	front.tell(sick.url())
	err := s.working(ctx, front, func() bool {
		seen := sick.state()
		return seen.wrong != nil || seen.asked > 0 && front.state().told >= enough
	})
	if wrong := sick.state().wrong; wrong != nil {
		return wrong
	}
	return err
}

// followed has the board be at one address, then at the other, and then at neither.
func (s *stage) followed(ctx context.Context, front, one, two *door) error {
	for _, d := range []*door{one, two} {
		front.tell(d.url())
		if d == two {
			one.move(two.url())
		}
		err := s.working(ctx, front, func() bool { return d.state().calls > 1 })
		if wrong := d.state().wrong; wrong != nil {
			return wrong
		}
		if err != nil {
			return err
		}
	}
	front.tell()
	two.close()
	return s.working(ctx, front, func() bool { return true })
}

// working posts one job after the other, each of which is consumed, until something is so that
// comes of what the front door says.
func (s *stage) working(ctx context.Context, front *door, so func() bool) error {
	says := front.state().says
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("it did not go to where answers say in Boardd-Public that the board is to be called: %q", says))
	defer cancel()
	for {
		uuids, err := s.post(ctx, "return", 1)
		if err == nil {
			err = s.until(ctx, "consumed", uuids, consumed)
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || so() {
			return err
		}
	}
}
