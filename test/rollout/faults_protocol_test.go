// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// protocol is what is written about a run.
type protocol struct {
	t *testing.T
	// file may be nil.
	file *os.File
}

// newProtocolFile is nil for an empty path.
func newProtocolFile(t *testing.T, path string) *os.File {
	t.Helper()
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file
}

func (p *protocol) printf(format string, args ...any) {
	p.t.Helper()
	p.t.Logf(format, args...)
	if p.file != nil {
		_, err := fmt.Fprintf(p.file, format+"\n", args...)
		require.NoError(p.t, err)
	}
}

// summary is written at the end: how often each action was met, and how often all else happened since before.
func (p *protocol) summary(w *workload, met, counts, before map[string]int) {
	p.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(met)) {
		p.printf("%4d times %s", met[name], name)
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		p.printf("%6d %s", counts[what]-before[what], what)
	}
	entries := w.ledger.Entries()
	p.printf("%d versions of claims, %d allocations, %d devices twice or changed", entries.Events, entries.Allocations, len(entries.Violations))
}

// counts is what has happened so far, to all programs that take part.
func (u *trouble) counts() map[string]int {
	counts := map[string]int{}
	for _, r := range u.programs() {
		for kind, n := range r.faults.Counts() {
			counts["requests: "+string(kind)] += n
		}
		starts, failures := r.counts()
		counts["restarts of "+r.name] = starts
		counts["restarts of "+r.name+" that failed"] = failures
	}
	for what, n := range cluster.history.Counts() {
		counts["operations: "+what] = n
	}
	return counts
}
