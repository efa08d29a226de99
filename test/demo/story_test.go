// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSortNaturally(t *testing.T) {
	names := []string{"pci-20-1", "device-12", "device-9", "device-13", "device-8", "pci-10-1"}
	sortNaturally(names)
	require.Equal(t, []string{"device-8", "device-9", "device-12", "device-13", "pci-10-1", "pci-20-1"}, names)
}
