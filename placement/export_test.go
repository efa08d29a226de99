// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/placement/internal/verdict"
)

// RemembersSets reports whether a Scheduler remembers in which sets clusters are.
func RemembersSets(s *Scheduler) bool { return !reflect.ValueOf(&s.memberships).Elem().IsZero() }

// ForgetAll empties the memory of a Scheduler.
func ForgetAll(s *Scheduler) { s.bound.Forget() }

// Used is what the memory of a Scheduler is said to take.
func Used(s *Scheduler) int64 { return s.bound.Used() }

// Verdicts are how many different ones are remembered of a Placement.
func Verdicts(s *Scheduler, placement types.UID) int {
	distinct := map[*verdict.Verdict]bool{}
	for _, v := range s.memory.Existing(placement).Look().Verdicts.On {
		distinct[v] = true
	}
	return len(distinct)
}

// Compiled is what the expressions of some Placements that are remembered are said to take.
func Compiled(s *Scheduler, placements ...types.UID) (bytes int64) {
	for _, uid := range placements {
		for _, part := range s.memory.Existing(uid).Look().Plan.Parts {
			bytes += int64(part.Bytes)
		}
	}
	return bytes
}
