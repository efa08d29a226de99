// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

func TestDuplicateDevice(t *testing.T) {
	slice := func(names ...string) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{}
		for _, name := range names {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: name})
		}
		return s
	}
	one := slice("a", "b")
	require.Empty(t, duplicateDevice([]*resourceapi.ResourceSlice{one}))
	require.Equal(t, "duplicate device name a", duplicateDevice([]*resourceapi.ResourceSlice{one, slice("a")}))
}
