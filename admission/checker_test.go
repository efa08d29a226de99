// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestManySets tests that the number of sets depends on the number of devices of a node.
func TestManySets(t *testing.T) {
	const unreadable = "devices.map(d, d.attributes['a'].x).sort().join(',') == '1,2'"
	warnings := func(options Options, devices string) string {
		return strings.Join(judged(newChecker(t, options).Claim(t.Context(), claimOf(t, devices), fakeClasses{})).Warnings, "\n")
	}
	require.NotContains(t, warnings(Options{Devices: 16}, asking(4, defined("a", unreadable))), "the search can't read")
	require.Contains(t, warnings(Options{Devices: 1 << 20}, asking(32, defined("a", unreadable))), "1.73e+157 sets of 32 devices")
}

func TestTextsAreBounded(t *testing.T) {
	checker := newChecker(t, Options{})
	long := strings.Repeat("é + ", 2000) + "true"
	got := judged(checker.Claim(t.Context(), claimOf(t, asking(4, defined("a", long))), fakeClasses{}))
	require.Len(t, got.Errors, 1)
	require.Less(t, len(got.Errors[0].Error()), maxText+200)
	require.Contains(t, got.Errors[0].Error(), "<input>:1:1: ")
	require.Equal(t, strings.ToValidUTF8(got.Errors[0].Detail, "?"), got.Errors[0].Detail)
	require.LessOrEqual(t, len(v1alpha1.DriverName), resourceapi.DriverNameMaxLength)
}
