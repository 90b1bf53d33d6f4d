package process

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
)

// Ports come from below the range that systems use for outgoing connections
// (Linux 32768, macOS 49152), so that none of those takes a port between our
// look and the child's bind.
const lowestPort, highestPort = 20000, 32000

var handedOut struct {
	sync.Mutex
	ports map[int]bool
}

// FreePort picks a loopback port that nobody listens on and that this process
// has not handed out yet. A child may still lose it to another program:
// see PortConflict.
func FreePort() (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	if len(handedOut.ports) > (highestPort-lowestPort)/2 {
		handedOut.ports = nil // most of those have long been given back
	}
	for range 500 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if handedOut.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		if handedOut.ports == nil {
			handedOut.ports = map[int]bool{}
		}
		handedOut.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("finding a free port on 127.0.0.1 between %d and %d: 500 tries failed", lowestPort, highestPort)
}

// PortConflict tells whether a child ended because another program took its
// port, which a new port cures.
func PortConflict(err error) bool {
	return err != nil && strings.Contains(err.Error(), "address already in use")
}
