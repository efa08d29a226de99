// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pending holds the methods of [Writes] that a scheduling cycle calls. [None] implements it for programs that allocate nothing.
type Pending interface {
	// CatchUp waits until the allocations that an earlier scheduler wrote are known.
	CatchUp(ctx context.Context) error
	// InUse returns the devices that a pod must not get, because the write of another pod may have given them to a claim.
	InUse(pod *v1.Pod, own types.UID, activate func(*v1.Pod)) []resourceapi.DeviceRequestAllocationResult
	// Binding returns a context for the writes of a pod that is being bound. end ends the binding.
	Binding(ctx context.Context) (binds context.Context, end func())
	// Bound returns the pod if it is bound, nil if it isn't.
	Bound(ctx context.Context, pod *v1.Pod, patience time.Duration) (*v1.Pod, error)
}

var (
	_ Pending = &Writes{}
	_ Pending = None{}
)

// None has no writes.
type None struct{}

// CatchUp implements [Pending].
func (None) CatchUp(context.Context) error { return nil }

// InUse implements [Pending].
func (None) InUse(*v1.Pod, types.UID, func(*v1.Pod)) []resourceapi.DeviceRequestAllocationResult {
	return nil
}

// Binding implements [Pending].
func (None) Binding(ctx context.Context) (binds context.Context, end func()) { return ctx, func() {} }

// Bound implements [Pending].
func (None) Bound(context.Context, *v1.Pod, time.Duration) (*v1.Pod, error) { return nil, nil }
