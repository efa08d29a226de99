// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func machineNamed(t *testing.T, name string) *Machine {
	t.Helper()
	for _, m := range Machines() {
		if m.Name == name {
			return &m
		}
	}
	require.FailNow(t, "no machine", name)
	return nil
}

// choosesAs compares two choosers on every set of free devices, of large nodes on some.
func choosesAs(t *testing.T, m *Machine, want, got chooser) {
	t.Helper()
	source := rand.New(rand.NewPCG(1, 2))
	if m.all().len() > 8 {
		for range 100 {
			compare(t, m, Set(source.Uint32())&m.all(), want, got)
		}
		return
	}
	for free := Set(0); free <= m.all(); free++ {
		compare(t, m, free, want, got)
	}
}

func compare(t *testing.T, m *Machine, free Set, want, got chooser) {
	t.Helper()
	for size := range m.sets {
		wanted, err := want(0, free, size)
		require.NoError(t, err)
		chosen, err := got(0, free, size)
		require.NoError(t, err)
		require.Equal(t, wanted.set, chosen.set, "%s: %d of %b", m.Name, size, free)
	}
}

// The expressions of the classes mean what the predicates in Go mean, and the first set is the first.
func TestFirstSet(t *testing.T) {
	for _, m := range Machines() {
		asked, err := newAsked(&m, 1, nil)
		require.NoError(t, err)
		choosesAs(t, &m, m.enumerated(func(_, _ Set) []int64 { return nil }), asked.alone)
	}
}

// The expression of the preference is worth what the scores are.
func TestStrongLinks(t *testing.T) {
	mesh := linkedMesh()
	for _, m := range []*Machine{machineNamed(t, "cube-mesh"), machineNamed(t, "gpus"), &mesh} {
		open, err := choosing{machine: m}.asks(Links)
		require.NoError(t, err)
		choose, err := open(nil)
		require.NoError(t, err)
		choosesAs(t, m, m.enumerated(func(_, set Set) []int64 { return []int64{int64(m.score(set))} }), choose)
	}
}

// KeepWhole breaks as few sets as any that would do, whatever is free.
func TestKeepWhole(t *testing.T) {
	for _, m := range Machines() {
		open, err := choosing{machine: &m}.asks(KeepWhole)
		require.NoError(t, err)
		choose, err := open(nil)
		require.NoError(t, err)
		choosesAs(t, &m, m.enumerated(m.losses), choose)
	}
}
