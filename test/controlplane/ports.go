// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

// FreePorts returns n different TCP ports of the loopback interface without a listener.
//
// The kernel could give a free port to an outgoing connection or another test before the child listens on it. So FreePorts
// leaves a closed connection in the state TIME_WAIT on each port. For a minute, the kernel then gives the port only to a server
// that requests its number with SO_REUSEADDR, as all Go servers do.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		port, err := reservePort()
		if err != nil {
			return nil, fmt.Errorf("find a free port on %s: %w", loopback, err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func reservePort() (port int, err error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()

	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		return 0, err
	}
	// Only the end of a connection that closes first enters TIME_WAIT. It must be the server, because the server's end has the
	// port. The deferred call closes the client later.
	if err := server.Close(); err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// address returns the loopback address with a port, for flags and URLs.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
