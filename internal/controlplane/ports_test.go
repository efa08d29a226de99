// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFreePorts(t *testing.T) {
	const n = 200
	ports, err := FreePorts(n)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range ports {
		require.False(t, seen[port], "port %d came twice", port)
		seen[port] = true
	}

	for range n {
		listener, err := net.Listen("tcp", loopback+":0")
		require.NoError(t, err)
		require.NotContains(t, seen, listener.Addr().(*net.TCPAddr).Port, "handed out to somebody else")
		require.NoError(t, listener.Close())
	}
	for _, port := range ports {
		listener, err := net.Listen("tcp", address(port))
		require.NoError(t, err, "the port is for who asks for it")
		require.NoError(t, listener.Close())
	}
}
