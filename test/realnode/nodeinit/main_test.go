// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunRefuses checks that nodeinit fails if it is not the first process of a namespace, before it changes any mounts. Its
// normal operation is tested by test/e2e.
func TestRunRefuses(t *testing.T) {
	require.ErrorContains(t, run([]string{"ready", "private"}, nil), "not the first process of a PID namespace")
	require.ErrorContains(t, run([]string{"ready"}, nil), "usage: nodeinit")
}
