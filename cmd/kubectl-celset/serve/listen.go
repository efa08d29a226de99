// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/celset/celset/internal/serving"
)

// maxConnections is the maximum number of connections. A browser opens six to a server.
const maxConnections = 128

// loopback maps an address that the server accepts to the IP address at which it listens. The name localhost is not resolved,
// because a resolver could return another address.
var loopback = map[string]string{"127.0.0.1": "127.0.0.1", "::1": "::1", "localhost": "127.0.0.1"}

// Listen listens at a port of the loopback interface. Port 0 means any free port. The address must be 127.0.0.1, ::1 or localhost.
func Listen(ctx context.Context, address string, port int) (net.Listener, error) {
	ip, ok := loopback[address]
	if !ok {
		return nil, fmt.Errorf("--address %q: must be 127.0.0.1, ::1 or localhost, because the page shows objects with your rights: "+
			"to open the page on another machine, forward the port with \"ssh -L\" and keep its number", address)
	}
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("--port %d: must be a port from 1 to 65535, or 0 for any free port", port)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("--port %d: %w", port, err)
	}
	at, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("--address %s: %s is not on the loopback interface", address, listener.Addr()), listener.Close())
	}
	return serving.Limit(listener, maxConnections), nil
}
