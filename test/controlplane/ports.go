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

// FreePorts returns n TCP ports of the loopback interface that nobody listens
// on, different from each other.
//
// A port that was merely found free could be handed out again, to an outgoing
// connection or another test, before the child binds it. So each port is left
// behind with a closed connection in TIME_WAIT: for a minute the kernel does
// not choose such a port by itself, but lets a server that asks for it by
// number and sets SO_REUSEADDR (as all Go programs do) have it.
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
	// The end that closes first is the one that enters TIME_WAIT; it must be the
	// one bound to the port. Deferred calls close the client afterwards.
	if err := server.Close(); err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// address is the loopback address with a port, as flags and URLs want it.
func address(port int) string {
	return net.JoinHostPort(loopback, strconv.Itoa(port))
}
