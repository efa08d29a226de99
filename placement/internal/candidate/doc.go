// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package candidate describes clusters that passed the filters, and clusters that are not selected. A [Candidate] has scores.
// [Ranked] sorts candidates by their scores. A [Reason] says why a cluster is not selected. A [Removal] is a cluster that a
// filter removed.
package candidate
