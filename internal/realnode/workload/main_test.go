// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintVariables(t *testing.T) {
	var out bytes.Buffer
	printVariables(&out, []string{"PATH=/bin", "CELSET_B=2", "XCELSET_=", "CELSET_A=1 2"})
	require.Equal(t, "CELSET_A=1 2\nCELSET_B=2\n", out.String())
}
