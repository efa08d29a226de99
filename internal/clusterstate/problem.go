// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
)

// Problem returns the allocation problem for the subject's claims without devices. If subject is nil, the problem has no
// claims.
func (s *State) Problem(subject *Subject, features structured.Features, options ...allocator.Option) allocator.Problem {
	p := allocator.Problem{
		Allocated: s.Claims,
		Classes:   s.Classes(),
		Slices:    s.Slices(features.DeviceTaints),
		Features:  features,
		Selectors: NewSelectors(features),
		Options:   options,
	}
	if subject != nil {
		p.Claims = subject.Pending()
	}
	return p
}
