// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRun checks that cleanups run in reverse order despite failures, and that the exit code reports failures.
func TestRun(t *testing.T) {
	pass, refuse := func() int { return 0 }, func() int { return 2 }
	fails := func(t testing.TB) { require.True(t, false) }
	for name, test := range map[string]struct {
		tests   func() int
		prepare []func(testing.TB)
		cleanup func(testing.TB)
		code    int
		ran     []string
	}{
		"pass":          {tests: pass, ran: []string{"tests", "second", "first"}},
		"test fails":    {tests: refuse, code: 2, ran: []string{"tests", "second", "first"}},
		"cleanup fails": {tests: pass, cleanup: fails, code: 1, ran: []string{"tests", "second", "first"}},
		"cleanup complains": {
			tests: refuse, cleanup: func(t testing.TB) { require.True(t, t.Failed(), "it knows of the tests") },
			code: 2, ran: []string{"tests", "second", "first"},
		},
		"preparation fails": {tests: pass, prepare: []func(testing.TB){fails, fails}, code: 1, ran: []string{"second", "first"}},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			of := &packageTest{}
			prepare := func(t testing.TB) {
				t.Cleanup(func() { ran = append(ran, "first") })
				t.Cleanup(func() {
					ran = append(ran, "second")
					if test.cleanup != nil {
						test.cleanup(t)
					}
				})
			}
			code := run(of, func() int { ran = append(ran, "tests"); return test.tests() }, append([]func(testing.TB){prepare}, test.prepare...))
			require.Equal(t, test.code, code)
			require.Equal(t, test.ran, ran)
			require.Error(t, of.Context().Err())
		})
	}
}

// TestShare checks that a shared value is created once, and is cleaned up after all tests of the package.
func TestShare(t *testing.T) {
	of := &packageTest{}
	started, ended := 0, 0
	shared := share(of, func(t testing.TB) *int {
		started++
		t.Cleanup(func() { ended++ })
		return &started
	})
	require.Zero(t, run(of, func() int {
		require.Same(t, shared(t), shared(t))
		require.Zero(t, ended)
		return 0
	}, nil))
	require.Equal(t, 1, started)
	require.Equal(t, 1, ended)
}
