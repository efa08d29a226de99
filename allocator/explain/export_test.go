// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

// OnNode makes the method onNode available to tests.
var OnNode = (*Problem).onNode

// CauseKinds returns the kinds of the causes that an explanation can name.
func CauseKinds() (kinds []string) {
	for _, r := range relaxations {
		kinds = append(kinds, r.kind)
	}
	return kinds
}
