// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"github.com/celset/celset/plugin/preparation"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/podclaims"
	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/plugin/guard"
)

// pluginName is the name of the plugin in scheduler configurations.
const pluginName = "DynamicResourcesCEL"

// claimsKey is where the state of a scheduling cycle has its *podClaims.
const claimsKey fwk.StateKey = pluginName + "/claims"

// podClaims are the claims of a pod for which devices have to be found, and what a scheduling cycle has found out about
// them. PreFilter resolves them once; the other extension points read them from the state of the cycle.
type podClaims struct {
	// unallocated are those that the pod names, without the claim for extended resources.
	unallocated []*resourceapi.ResourceClaim
	// allocated are those that have devices.
	allocated []*resourceapi.ResourceClaim
	// extended is the claim for extended resources, nil if there is nothing to request. Upstream's Filter makes it, for
	// each node anew; whether constraints hold for it has to be known without a node.
	extended *resourceapi.ResourceClaim
	// err says why the pod can't use one of its claims, whatever devices are free. The other claims are not listed then.
	err error

	// prepared has what the unallocated claims say. isPrepared: that was looked up.
	prepared   allocator.Prepared
	isPrepared bool
	// attempt is what the guard admitted, nil if there is nothing to allocate.
	attempt *guard.Attempt
	// ours looks at the nodes, nil if upstream's allocator does.
	ours *measuredAllocator
	// writing: claims of the pod are written, or may be. written: all of them are, and the binding follows.
	writing, written bool
}

// Clone implements [fwk.StateData]. A trial with a clone of the state replaces what upstream's plugin knows of the devices
// on a node, because its state is the same in the clone. What is said of the devices has to go with them.
func (c *podClaims) Clone() fwk.StateData { return c }

// claimsIn is nil before PreFilter.
func claimsIn(state fwk.CycleState) *podClaims {
	data, err := state.Read(claimsKey)
	if err != nil {
		return nil
	}
	claims, _ := data.(*podClaims)
	return claims
}

// resolver finds the claims of pods, and what holds for them in a profile.
type resolver struct {
	manager fwk.SharedDRAManager
	checker *podclaims.Checker
	// features are the feature gates of the scheduler.
	features plfeature.Features
	// enabled is the feature gate of constraints and preferences.
	enabled bool
	// preference is the policy for claims without a preference, "" for none.
	preference v1alpha1.PreferencePolicy
}

// resolve finds the claims of a pod. Without dynamic resource allocation the pod has none.
func (r *resolver) resolve(pod *v1.Pod) *podClaims {
	if !r.features.EnableDynamicResourceAllocation {
		return &podClaims{}
	}
	c := &podClaims{extended: r.extendedClaim(pod)}
	var claims []*resourceapi.ResourceClaim
	if claims, c.err = r.checker.Find(pod, r.manager.ResourceClaims().Get); c.err != nil {
		return c
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			c.unallocated = append(c.unallocated, claim)
		} else {
			c.allocated = append(c.allocated, claim)
		}
	}
	return c
}

// all are the unallocated claims, with that for extended resources.
func (c *podClaims) all() []*resourceapi.ResourceClaim {
	if c.extended == nil {
		return c.unallocated
	}
	return append(slices.Clone(c.unallocated), c.extended)
}

// All returns what all claims say, with the claim for extended resources.
func (c *podClaims) allPrepared(ctx context.Context, p preparation.Claims) (allocator.Prepared, error) {
	if c.isPrepared && c.extended == nil {
		return c.prepared, nil
	}
	return preparation.All(ctx, p, c.all())
}

// uids returns the UIDs of the claims that the pod names.
func (c *podClaims) uids() []types.UID {
	var uids []types.UID
	for _, claim := range slices.Concat(c.unallocated, c.allocated) {
		uids = append(uids, claim.UID)
	}
	return uids
}

// own is the claim that may have again what it may have, "" for none: if the pod has a second claim to allocate, that
// could get what the first one may have.
func (c *podClaims) own() types.UID {
	if len(c.unallocated) != 1 || c.extended != nil {
		return ""
	}
	return c.unallocated[0].UID
}

// extendedClaim is nil if there is nothing to request.
func (r *resolver) extendedClaim(pod *v1.Pod) *resourceapi.ResourceClaim {
	if !r.features.EnableDRAExtendedResource {
		return nil
	}
	return extended.Claim(pod, r.manager.DeviceClassResolver().GetDeviceClass)
}

// wantsExtended reports whether devices are to be found for extended resources of a pod. It takes less time than extendedClaim.
func (r *resolver) wantsExtended(pod *v1.Pod) bool {
	return r.features.EnableDRAExtendedResource && pod.Status.ExtendedResourceClaimStatus == nil &&
		extended.Wants(pod, r.manager.DeviceClassResolver().GetDeviceClass)
}

// constrained are the claims for which a CEL constraint holds: those that refer to one, and those with devices of a class
// that has one by default. While the gate is off defaults don't hold, and pods are scheduled as they would be by a scheduler
// that does not know them.
func (r *resolver) constrained(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	hasDefaults := func(className string) bool {
		class, err := r.manager.DeviceClasses().Get(className)
		return r.enabled && err == nil && v1alpha1.HasDefaults(class)
	}
	return slices.DeleteFunc(slices.Clone(claims), func(claim *resourceapi.ResourceClaim) bool { return !v1alpha1.HasConstraints(claim, hasDefaults) })
}

// prefers reports whether a preference is about one of the claims. While the gate is off they are allocated as if they had
// none.
func (r *resolver) prefers(prepared allocator.Prepared, claims []*resourceapi.ResourceClaim) bool {
	hasPreferences := func(className string) bool {
		class, err := r.manager.DeviceClasses().Get(className)
		return err == nil && v1alpha1.HasPreferences(class)
	}
	return r.enabled && (r.preference != "" || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		if prefers, known := prepared.Prefers(claim); known {
			return prefers
		}
		return v1alpha1.HasPreference(claim, hasPreferences)
	}))
}

// claimsOf are the claims of a pod that there are, allocated or not.
func (r *resolver) claimsOf(pod *v1.Pod) []*resourceapi.ResourceClaim {
	return preemption.ClaimsOf(pod, r.claim)
}

// claim is nil if there is none.
func (r *resolver) claim(namespace, name string) *resourceapi.ResourceClaim {
	claim, err := r.manager.ResourceClaims().Get(namespace, name)
	if err != nil {
		return nil
	}
	return claim
}
