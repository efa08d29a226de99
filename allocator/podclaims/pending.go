// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package podclaims

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/nearest"
)

// Bounded returns an error if the unallocated claims of a pod exceed the limits for expressions and quantities.
func Bounded(claims []*resourceapi.ResourceClaim) error {
	if err := v1alpha1.CheckPod(claims); err != nil {
		return err
	}
	for _, claim := range claims {
		if err := allocator.CheckQuantities(claim); err != nil {
			return err
		}
	}
	return nil
}

// Classes returns an error if the DeviceClass of a request does not exist, or if a request has alternatives and the feature for
// prioritized lists is off. The claims must be unallocated.
func (c *Checker) Classes(claims []*resourceapi.ResourceClaim, classes structured.DeviceClassLister) error {
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			if err := c.request(claim, &claim.Spec.Devices.Requests[i], classes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Checker) request(claim *resourceapi.ResourceClaim, request *resourceapi.DeviceRequest, classes structured.DeviceClassLister) error {
	if request.Exactly != nil {
		return exists(claim, request.Name, request.Exactly.DeviceClassName, classes)
	}
	if len(request.FirstAvailable) > 0 && !c.PrioritizedList {
		return fmt.Errorf("claim %s, request %s: firstAvailable needs the feature gate DRAPrioritizedList, which is off in the scheduler: enable it there", klog.KObj(claim), request.Name)
	}
	for i := range request.FirstAvailable {
		alternative := &request.FirstAvailable[i]
		if err := exists(claim, resourceclaim.CreateSubRequestRef(request.Name, alternative.Name), alternative.DeviceClassName, classes); err != nil {
			return err
		}
	}
	return nil
}

// exists returns an error if a DeviceClass does not exist. It ignores other errors of Get, because the allocator reports them.
func exists(claim *resourceapi.ResourceClaim, request, class string, classes structured.DeviceClassLister) error {
	if _, err := classes.Get(class); !apierrors.IsNotFound(err) {
		return nil
	}
	all, err := classes.List()
	if err != nil {
		return err
	}
	names := func(yield func(string) bool) {
		for _, other := range all {
			if !yield(other.Name) {
				return
			}
		}
	}
	near := nearest.DidYouMean("", class, slices.Values(slices.Sorted(names)))
	return fmt.Errorf("claim %s, request %s: device class %s does not exist%s", klog.KObj(claim), request, class, near)
}
