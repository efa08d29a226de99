// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

// losses are what KeepWhole is about, by looking at all sets: how many of those that are free for
// each size, the largest first, are no longer free after the given ones are taken, as negative
// numbers.
func (m *Machine) losses(free, taken Set) []int64 {
	var values []int64
	for i := len(m.constraints) - 1; i >= 0; i-- {
		lost := int64(0)
		for _, set := range m.whole[i] {
			if free.has(set) && set&taken != 0 {
				lost++
			}
		}
		values = append(values, -lost)
	}
	return values
}
