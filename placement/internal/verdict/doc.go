// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict keeps what the predicates of a Placement say of each cluster. A [Judge]
// returns [Verdicts] on clusters. It evaluates the predicates only for clusters on which
// no former verdict holds. An [Overrun] says that the evaluations took longer than they may.
package verdict
