// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunRefuses checks that nodeinit does not change the mounts of the machine. test/e2e runs it as the first process of a
// namespace.
func TestRunRefuses(t *testing.T) {
	require.ErrorContains(t, run([]string{"ready", "private"}, nil), "not the first process of a PID namespace")
	require.ErrorContains(t, run([]string{"ready"}, nil), "usage: nodeinit")
}
