// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	failure := errors.New("failure")
	for name, test := range map[string]struct {
		took time.Duration
		err  error
		want string
	}{
		"quick":        {took: 900 * time.Millisecond},
		"slow":         {took: 3140 * time.Millisecond, want: "building kwok ...\nkwok built after 3.1s\n"},
		"very slow":    {took: 50 * time.Second, want: "building kwok ...\nstill building kwok, 21s\nstill building kwok, 41s\nkwok built after 50.0s\n"},
		"quick to err": {took: time.Millisecond, err: failure},
		"slow to err":  {took: time.Minute, err: failure, want: "building kwok ...\nstill building kwok, 21s\nstill building kwok, 41s\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				err := newProgress(&out).step("building kwok", "kwok built", func() error {
					time.Sleep(test.took)
					return test.err
				})
				require.Equal(t, test.err, err)
				require.Equal(t, test.want, out.String())
			})
		})
	}
}

func TestProgressWithoutWriter(t *testing.T) {
	require.NotPanics(t, func() { newProgress(nil).printf("line") })
}
