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

// Pending holds the methods of [Writes] that a scheduling cycle calls. [None] implements Pending in programs that write no
// allocations.
type Pending interface {
	// CatchUp reads the allocations that an earlier leader wrote.
	CatchUp(ctx context.Context) error
	// InUse returns the devices that the pod must not get, because a pending write may have given them to another claim.
	InUse(pod *v1.Pod, own types.UID, activate func(*v1.Pod)) []resourceapi.DeviceRequestAllocationResult
	// Binding returns a context for all writes of one pod's binding. end must be called when the binding has ended.
	Binding(ctx context.Context) (binds context.Context, end func())
	// Bound returns the pod if it is bound, otherwise nil.
	Bound(ctx context.Context, pod *v1.Pod, patience time.Duration) (*v1.Pod, error)
}

var (
	_ Pending = &Writes{}
	_ Pending = None{}
)

// None implements [Pending] without any pending writes.
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
