// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package candidate has the clusters that passed the filters of a Placement. A
// [Candidate] has its scores and its place in the ranking ([Ranked]). A [Reason] says why
// a cluster is not selected, and a [Removal] which cluster a filter removed.
package candidate
