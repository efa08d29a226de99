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
// A port that is merely free could be given to an outgoing connection or another test before the child binds it. So FreePorts
// leaves a closed connection in TIME_WAIT on each port. For a minute the kernel does not choose such a port by itself. But a
// server that requests the port by number with SO_REUSEADDR (as all Go programs do) gets it.
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
	// The end that closes first enters TIME_WAIT, so it must be the end that is bound to the port. Deferred calls close the client
	// afterwards.
	if err := server.Close(); err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// address returns the loopback address with a port, for flags and URLs.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
