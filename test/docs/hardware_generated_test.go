// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// tell draws the node on which nothing fits, and has what the events of the pod say.
func (e *example) tell(t *testing.T, p *hardwarePage) string {
	last := e.occupancies[len(e.occupancies)-1]
	explanation, err := p.problem(t, e, last.InUse).Node(t.Context(), node)
	require.NoError(t, err)
	require.False(t, explanation.Fits)
	return fmt.Sprintf("```text\n%s\n\nnearest miss: node %s: %s\n```\n", e.picture(t, last), nodeName, explanation)
}

// costs has a row for each template, with what is hardest.
func costs(t *testing.T, p *hardwarePage, examples []*example) string {
	var text strings.Builder
	text.WriteString("| claim | free | sets of the wanted size | steps, at most | sets evaluated |\n|---|---|---|---|---|\n")
	for _, e := range examples {
		o := e.occupancies[len(e.occupancies)-1]
		require.False(t, e.fits(o))
		stats := e.work(t, p, o)
		fmt.Fprintf(&text, "| `%s` | %d of %d | %s | %d | %d |\n",
			e.template, e.candidates(o.InUse), e.candidates(0), grouped(e.sets(o)), roundedUp(stats.Steps), stats.Evaluations)
	}
	return text.String()
}

// work is what a search takes that nothing is known for from before.
func (e *example) work(t *testing.T, p *hardwarePage, o shape.Occupancy) allocator.Stats {
	problem := p.problem(t, e, o.InUse)
	a, err := problem.NewAllocator(t.Context())
	require.NoError(t, err)
	_, err = a.Allocate(t.Context(), node, problem.Claims)
	require.NoError(t, err)
	return a.Stats()
}

// candidates are how many devices some request may get.
func (e *example) candidates(inUse shape.Set) int {
	free := 0
	for i, d := range e.devices {
		if !inUse.Has(i) && slices.ContainsFunc(e.wants, func(w want) bool { return w.may(d) }) {
			free++
		}
	}
	return free
}

// sets is how many there are of the wanted size. No two requests may get the same device.
func (e *example) sets(o shape.Occupancy) *big.Int {
	all := big.NewInt(1)
	for _, w := range e.wants {
		free := int64(0)
		for i, d := range e.devices {
			if !o.InUse.Has(i) && w.may(d) {
				free++
			}
		}
		all.Mul(all, new(big.Int).Binomial(free, int64(w.count)))
	}
	return all
}

func (e *example) picture(t *testing.T, o shape.Occupancy) string {
	marks := map[string]topology.Mark{}
	for i := range o.InUse.All() {
		marks[e.devices[i].Name] = topology.Mark{State: topology.Taken}
	}
	var text strings.Builder
	require.NoError(t, topology.Draw(&text, e.draw, marks))
	return strings.TrimSpace(text.String())
}

// grouped writes 1820 as 1,820, and rounds what has more than nine digits to four of them,
// such as 4.885e14.
func grouped(n *big.Int) string {
	digits := n.String()
	if len(digits) > 9 {
		return strings.NewReplacer("e+0", "e", "e+", "e").Replace(new(big.Float).SetInt(n).Text('e', 3))
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// roundedUp is the next of 10, 20, 50, 100 and so on: the page need not change with
// every change of the search.
func roundedUp(steps int64) int64 {
	for size := int64(10); ; size *= 10 {
		i := slices.IndexFunc([]int64{1, 2, 5}, func(times int64) bool { return steps <= times*size })
		if i >= 0 {
			return []int64{1, 2, 5}[i] * size
		}
	}
}

func TestNumbers(t *testing.T) {
	require.Equal(t, "70", grouped(big.NewInt(70)))
	require.Equal(t, "1,820", grouped(big.NewInt(1820)))
	require.Equal(t, "10,518,300", grouped(big.NewInt(10_518_300)))
	require.Equal(t, "4.426e9", grouped(big.NewInt(4_426_165_368)))
	require.Equal(t, "4.885e14", grouped(big.NewInt(488_526_937_079_580)), "rounded, not cut")
	for steps, want := range map[int64]int64{0: 10, 10: 10, 11: 20, 21: 50, 51: 100, 1001: 2000} {
		require.Equal(t, want, roundedUp(steps))
	}
}
