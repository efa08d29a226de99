// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	require.Equal(t, "v1.2.3", of(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, true))
	require.Equal(t, "(devel)", of(&debug.BuildInfo{}, true), "built from files")
	require.Equal(t, "(devel)", of(nil, false), "built without modules")
	require.NotEmpty(t, Get())
}
