// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/test/conformance/scenario"
)

// panicked is how upstream's allocators end for some input that the API does not
// allow.
const panicked kind = "panic"

// TestDifferences pins what docs/comparison.md#differences-from-upstreams-allocator lists: how our allocator and those
// of upstream differ, so that an upgrade shows when they no longer do.
func TestDifferences(t *testing.T) {
	documentation, err := os.ReadFile(filepath.Join("..", "..", "docs", "comparison.md"))
	require.NoError(t, err)
	tests := map[string]struct{ ours, experimental, incubating kind }{
		"all-cel-false.yaml":         {none, fatal, fatal},
		"class-selector-empty.yaml":  {fatal, panicked, panicked},
		"count-negative.yaml":        {found, panicked, panicked},
		"default-out-of-range.yaml":  {found, none, none},
		"range-with-step-zero.yaml":  {found, panicked, panicked},
		"range-without-minimum.yaml": {found, panicked, panicked},
		"request-empty.yaml":         {fatal, panicked, panicked},
		"skip-node-operations.yaml":  {none, none, found},
	}
	folder := filepath.Join("testdata", "differences")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := scenario.Load(filepath.Join(folder, name))
			require.NoError(t, err)
			require.Contains(t, string(documentation), name)
			require.Equal(t, c.Outcome, string(test.ours))
			require.Equal(t, test.ours, ours(c).kind, "ours: %v", ours(c))
			require.Equal(t, test.experimental, orPanic(experimental, c), "experimental")
			require.Equal(t, test.incubating, orPanic(incubating, c), "incubating")
		})
	}
	stored, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, stored, len(tests), "a stored difference is not tested")
}

func orPanic(v variant, c *scenario.Case) (result kind) {
	defer func() {
		if recover() != nil {
			result = panicked
		}
	}()
	return upstream(v, c).kind
}

// TestDifferenceCancellation: upstream's error wraps the cause only.
func TestDifferenceCancellation(t *testing.T) {
	c, err := scenario.Load(filepath.Join("testdata", "identical-devices.yaml"))
	require.NoError(t, err)
	cause := errors.New("the node is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)

	theirs, err := newUpstream(experimental, c)
	require.NoError(t, err)
	_, err = theirs.Allocate(ctx, c.Node, c.Claims)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, context.Canceled)

	a, err := allocator.NewAllocator(ctx, c.Features, c.State(), scenario.ClassLister(c.Classes), c.Slices, selectorCache(c))
	require.NoError(t, err)
	_, err = a.Allocate(ctx, c.Node, c.Claims)
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, context.Canceled)
}
