// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/placement/internal/verdict"
)

// RemembersSets reports whether a Scheduler stores the clusters of each ManagedClusterSet.
func RemembersSets(s *Scheduler) bool { return !reflect.ValueOf(&s.memberships).Elem().IsZero() }

// ForgetAll removes everything from the memory of a Scheduler.
func ForgetAll(s *Scheduler) { s.bound.Forget() }

// Used returns the estimated size of a Scheduler's memory in bytes.
func Used(s *Scheduler) int64 { return s.bound.Used() }

// Verdicts returns the number of distinct verdicts that are stored for a Placement. Clusters with equal results share a
// verdict.
func Verdicts(s *Scheduler, placement types.UID) int {
	distinct := map[*verdict.Verdict]bool{}
	for _, v := range s.memory.Existing(placement).Look().Verdicts.On {
		distinct[v] = true
	}
	return len(distinct)
}

// Compiled returns the estimated size in bytes of the stored expressions of the Placements.
func Compiled(s *Scheduler, placements ...types.UID) (bytes int64) {
	for _, uid := range placements {
		for _, part := range s.memory.Existing(uid).Look().Plan.Parts {
			bytes += int64(part.Bytes)
		}
	}
	return bytes
}
