// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator/internal/selection"
)

// A Row with several words returns the verdicts that concurrent goroutines enter.
func TestSelectionRows(t *testing.T) {
	const devices = 150
	row := selection.NewRow(devices)
	want := make([]selection.Verdict, devices)
	var group sync.WaitGroup
	for i := range devices {
		require.Equal(t, selection.Unknown, row.Of(i))
		want[i] = selection.Verdict(i % 3)
		if want[i] == selection.Unknown {
			continue
		}
		for range 3 {
			group.Go(func() {
				row.Enter(i, want[i] == selection.Selected)
				for at := range devices {
					if is := row.Of(at); is != selection.Unknown && is != want[at] {
						t.Errorf("device %d: %d", at, is)
					}
				}
			})
		}
	}
	group.Wait()
	for i := range devices {
		require.Equal(t, want[i], row.Of(i))
	}
}
