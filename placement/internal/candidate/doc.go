// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package candidate describes clusters that passed the filters, and clusters that are not selected. A [Candidate] has scores and
// a position in the ranking ([Ranked]). A [Reason] says why a cluster is not selected. A [Removal] is a cluster removed by a
// filter.
package candidate
