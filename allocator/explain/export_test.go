// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

// OnNode makes the method onNode available to tests.
var OnNode = (*Problem).onNode

// WithoutParts makes explanations after Ready read all slices and claims for each node.
func WithoutParts(p *Problem) { p.parts = nil }

// CauseKinds returns the kinds of the causes that an explanation can name.
func CauseKinds() (kinds []string) {
	for _, r := range relaxations {
		kinds = append(kinds, r.kind)
	}
	return kinds
}
