// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemand(t *testing.T) {
	tests := map[string]struct {
		requests string
		covered  []string
		devices  int
		sets     string
	}{
		"none":            {requests: "[]", sets: "1"},
		"one by default":  {requests: "[{name: a, exactly: {deviceClassName: c}}]", devices: 1, sets: "64"},
		"four":            {requests: "[{name: a, exactly: {allocationMode: ExactCount, count: 4}}]", devices: 4, sets: "635376"},
		"all":             {requests: "[{name: a, exactly: {allocationMode: All}}]", devices: 32, sets: "1"},
		"as many as ever": {requests: "[{name: a, exactly: {count: 32}}]", devices: 32, sets: "1832624140942590534"},
		"more than ever":  {requests: "[{name: a, exactly: {count: 9223372036854775807}}]", devices: 32, sets: "1"},
		"negative":        {requests: "[{name: a, exactly: {count: -9223372036854775808}}]", devices: 1, sets: "64"},
		"two requests":    {requests: "[{name: a, exactly: {count: 2}}, {name: b, exactly: {count: 3}}]", devices: 5, sets: "83994624"},
		"only one is covered": {
			requests: "[{name: a, exactly: {count: 2}}, {name: b, exactly: {count: 3}}]", covered: []string{"b"}, devices: 3, sets: "41664"},
		"the largest alternative": {
			requests: "[{name: a, firstAvailable: [{name: x, count: 2}, {name: y, count: 3}, {name: z, allocationMode: All}]}]",
			covered:  []string{"a"}, devices: 32, sets: "41664"},
		"one alternative": {
			requests: "[{name: a, firstAvailable: [{name: x, count: 2}, {name: y, count: 3}]}]",
			covered:  []string{"a/x"}, devices: 2, sets: "2016"},
		"no kind of request": {requests: "[{name: a}]", sets: "1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim := claimOf(t, "requests: "+test.requests)
			got := demandOf(&claim.Spec.Devices, test.covered, DefaultDevices)
			require.Equal(t, test.devices, got.devices)
			require.Equal(t, test.sets, got.sets.String())
		})
	}
}
