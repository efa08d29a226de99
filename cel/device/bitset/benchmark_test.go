// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/celset/celset/cel/device/bitset"
)

// loops are the ways to iterate over a set, and a loop written by hand for comparison. The body of each loop is small: one
// lookup in a table.
var loops = []struct {
	name string
	sum  func(set bitset.Set, table []int) int
}{
	{"handwritten", func(set bitset.Set, table []int) (sum int) {
		for w, word := range set {
			for ; word != 0; word &= word - 1 {
				sum += table[w*64+bits.TrailingZeros64(word)]
			}
		}
		return sum
	}},
	{"All", func(set bitset.Set, table []int) (sum int) {
		for i := range set.All() {
			sum += table[i]
		}
		return sum
	}},
	{"Next", func(set bitset.Set, table []int) (sum int) {
		for i := set.Next(0); i >= 0; i = set.Next(i + 1) {
			sum += table[i]
		}
		return sum
	}},
}

// BenchmarkLoop shows that All is as fast as the loop written by hand. Next takes four times as long if most bits are set.
func BenchmarkLoop(b *testing.B) {
	for _, size := range []struct{ positions, every int }{{16, 1}, {64, 1}, {64, 16}, {512, 1}, {512, 16}} {
		set, table := bitset.New(size.positions), make([]int, size.positions)
		for i := 0; i < size.positions; i += size.every {
			set.Add(i)
			table[i] = i * i
		}
		for _, loop := range loops {
			b.Run(fmt.Sprintf("positions=%d/of=%d/loop=%s", set.Count(), size.positions, loop.name), func(b *testing.B) {
				for b.Loop() {
					loop.sum(set, table)
				}
			})
		}
	}
}
