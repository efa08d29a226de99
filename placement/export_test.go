// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/placement/internal/verdict"
)

// RemembersSets reports whether a Scheduler remembers the sets of clusters.
func RemembersSets(s *Scheduler) bool { return !reflect.ValueOf(&s.memberships).Elem().IsZero() }

// ForgetAll empties the memory of a Scheduler.
func ForgetAll(s *Scheduler) { s.bound.Forget() }

// Used returns the estimated size of a Scheduler's memory.
func Used(s *Scheduler) int64 { return s.bound.Used() }

// Verdicts returns the number of different verdicts remembered for a Placement.
func Verdicts(s *Scheduler, placement types.UID) int {
	distinct := map[*verdict.Verdict]bool{}
	for _, v := range s.memory.Existing(placement).Look().Verdicts.On {
		distinct[v] = true
	}
	return len(distinct)
}

// Compiled returns the estimated size of the remembered expressions of Placements.
func Compiled(s *Scheduler, placements ...types.UID) (bytes int64) {
	for _, uid := range placements {
		for _, part := range s.memory.Existing(uid).Look().Plan.Parts {
			bytes += int64(part.Bytes)
		}
	}
	return bytes
}
