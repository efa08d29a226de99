// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"context"
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
	"github.com/celset/celset/plugin/preparation"
)

// PluginName is the name of the plugin in scheduler configurations.
const PluginName = "DynamicResourcesCEL"

// ClaimsKey is where the state of a scheduling cycle has its *PodClaims.
const ClaimsKey fwk.StateKey = PluginName + "/claims"

// PodClaims are the claims of a pod for which devices have to be found, and what a scheduling cycle has found out about
// them. PreFilter resolves them once; the other extension points read them from the state of the cycle.
type PodClaims struct {
	// Unallocated are those that the pod names, without the claim for extended resources.
	Unallocated []*resourceapi.ResourceClaim
	// Allocated are those that have devices.
	Allocated []*resourceapi.ResourceClaim
	// Extended is the claim for extended resources, nil if there is nothing to request. Upstream's Filter makes it, for
	// each node anew; whether constraints hold for it has to be known without a node.
	Extended *resourceapi.ResourceClaim
	// Err says why the pod can't use one of its claims, whatever devices are free. The other claims are not listed then.
	Err error

	// Prepared has what the unallocated claims say. IsPrepared: that was looked up.
	Prepared   allocator.Prepared
	IsPrepared bool
	// Attempt is what the guard admitted, nil if there is nothing to allocate.
	Attempt *guard.Attempt
	// Ours looks at the nodes, nil if upstream's allocator does.
	Ours *MeasuredAllocator
	// writing: claims of the pod are written, or may be. written: all of them are, and the binding follows.
	Writing, Written bool
}

// Clone implements [fwk.StateData]. A trial with a clone of the state replaces what upstream's plugin knows of the devices
// on a node, because its state is the same in the clone. What is said of the devices has to go with them.
func (c *PodClaims) Clone() fwk.StateData { return c }

// ClaimsIn is nil before PreFilter.
func ClaimsIn(state fwk.CycleState) *PodClaims {
	data, err := state.Read(ClaimsKey)
	if err != nil {
		return nil
	}
	claims, _ := data.(*PodClaims)
	return claims
}

// Resolver finds the claims of pods, and what holds for them in a profile.
type Resolver struct {
	Manager fwk.SharedDRAManager
	Checker *podclaims.Checker
	// Features are the feature gates of the scheduler.
	Features plfeature.Features
	// Enabled is the feature gate of constraints and preferences.
	Enabled bool
	// Preference is the policy for claims without a preference, "" for none.
	Preference v1alpha1.PreferencePolicy
}

// Resolve finds the claims of a pod. Without dynamic resource allocation the pod has none.
func (r *Resolver) Resolve(pod *v1.Pod) *PodClaims {
	if !r.Features.EnableDynamicResourceAllocation {
		return &PodClaims{}
	}
	c := &PodClaims{Extended: r.ExtendedClaim(pod)}
	var claims []*resourceapi.ResourceClaim
	if claims, c.Err = r.Checker.Find(pod, r.Manager.ResourceClaims().Get); c.Err != nil {
		return c
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			c.Unallocated = append(c.Unallocated, claim)
		} else {
			c.Allocated = append(c.Allocated, claim)
		}
	}
	return c
}

// All are the unallocated claims, with that for extended resources.
func (c *PodClaims) All() []*resourceapi.ResourceClaim {
	if c.Extended == nil {
		return c.Unallocated
	}
	return append(slices.Clone(c.Unallocated), c.Extended)
}

// AllPrepared returns what all claims say, with the claim for extended resources.
func (c *PodClaims) AllPrepared(ctx context.Context, p preparation.Claims) (allocator.Prepared, error) {
	if c.IsPrepared && c.Extended == nil {
		return c.Prepared, nil
	}
	return preparation.All(ctx, p, c.All())
}

// UIDs returns the UIDs of the claims that the pod names.
func (c *PodClaims) UIDs() []types.UID {
	var uids []types.UID
	for _, claim := range slices.Concat(c.Unallocated, c.Allocated) {
		uids = append(uids, claim.UID)
	}
	return uids
}

// Own is the claim that may have again what it may have, "" for none: if the pod has a second claim to allocate, that
// could get what the first one may have.
func (c *PodClaims) Own() types.UID {
	if len(c.Unallocated) != 1 || c.Extended != nil {
		return ""
	}
	return c.Unallocated[0].UID
}

// ExtendedClaim is nil if there is nothing to request.
func (r *Resolver) ExtendedClaim(pod *v1.Pod) *resourceapi.ResourceClaim {
	if !r.Features.EnableDRAExtendedResource {
		return nil
	}
	return extended.Claim(pod, r.Manager.DeviceClassResolver().GetDeviceClass)
}

// WantsExtended reports whether devices are to be found for extended resources of a pod. It takes less time than ExtendedClaim.
func (r *Resolver) WantsExtended(pod *v1.Pod) bool {
	return r.Features.EnableDRAExtendedResource && pod.Status.ExtendedResourceClaimStatus == nil &&
		extended.Wants(pod, r.Manager.DeviceClassResolver().GetDeviceClass)
}

// Constrained are the claims for which a CEL constraint holds: those that refer to one, and those with devices of a class
// that has one by default. While the gate is off defaults don't hold, and pods are scheduled as they would be by a scheduler
// that does not know them.
func (r *Resolver) Constrained(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	hasDefaults := func(className string) bool {
		class, err := r.Manager.DeviceClasses().Get(className)
		return r.Enabled && err == nil && v1alpha1.HasDefaults(class)
	}
	return slices.DeleteFunc(slices.Clone(claims), func(claim *resourceapi.ResourceClaim) bool { return !v1alpha1.HasConstraints(claim, hasDefaults) })
}

// Prefers reports whether a preference is about one of the claims. While the gate is off they are allocated as if they had
// none.
func (r *Resolver) Prefers(prepared allocator.Prepared, claims []*resourceapi.ResourceClaim) bool {
	hasPreferences := func(className string) bool {
		class, err := r.Manager.DeviceClasses().Get(className)
		return err == nil && v1alpha1.HasPreferences(class)
	}
	return r.Enabled && (r.Preference != "" || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		if prefers, known := prepared.Prefers(claim); known {
			return prefers
		}
		return v1alpha1.HasPreference(claim, hasPreferences)
	}))
}

// ClaimsOf are the claims of a pod that there are, allocated or not.
func (r *Resolver) ClaimsOf(pod *v1.Pod) []*resourceapi.ResourceClaim {
	return preemption.ClaimsOf(pod, r.Claim)
}

// Claim is nil if there is none.
func (r *Resolver) Claim(namespace, name string) *resourceapi.ResourceClaim {
	claim, err := r.Manager.ResourceClaims().Get(namespace, name)
	if err != nil {
		return nil
	}
	return claim
}
