// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintVariables(t *testing.T) {
	for name, test := range map[string]struct {
		environment []string
		want        string
	}{
		"devices": {
			environment: []string{"PATH=/bin", "CELSET_DEVICE_X__MLA_3=driver=x pool=p device=mla-3 index=3", "XCELSET_=", "CELSET_DEVICE_X__MLA_2=driver=x device=mla-2"},
			want: "CELSET_DEVICE_X__MLA_2=driver=x device=mla-2\n" +
				"CELSET_DEVICE_X__MLA_3=driver=x pool=p device=mla-3 index=3\n" +
				"This container has 2 devices: mla-2, mla-3\n",
		},
		"others": {environment: []string{"CELSET_A=device=1", "CELSET_DEVICE_B=2"}, want: "CELSET_A=device=1\nCELSET_DEVICE_B=2\nThis container has 0 devices: \n"},
		"none":   {want: "This container has 0 devices: \n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			printVariables(&out, test.environment)
			require.Equal(t, test.want, out.String())
		})
	}
}
