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

// ClaimsKey is the CycleState key of the *PodClaims.
const ClaimsKey fwk.StateKey = PluginName + "/claims"

// PodClaims holds the claims of a pod, and the results of the scheduling cycle for them. PreFilter resolves the claims once. The
// other extension points read them from the cycle state.
type PodClaims struct {
	// Unallocated holds the unallocated claims, without the claim for extended resources.
	Unallocated []*resourceapi.ResourceClaim
	// Allocated holds the allocated claims.
	Allocated []*resourceapi.ResourceClaim
	// Extended is the claim for extended resources, nil if the pod requests none. Upstream's Filter makes another claim for each
	// node, but constraints must be found without a node.
	Extended *resourceapi.ResourceClaim
	// Err is the reason why the pod can't use one of its claims, regardless of devices. The other claims are not listed then.
	Err error

	// Prepared has the prepared unallocated claims. IsPrepared is set once they were looked up.
	Prepared   allocator.Prepared
	IsPrepared bool
	// Attempt is the attempt that the guard admitted, nil if there is nothing to allocate.
	Attempt *guard.Attempt
	// Ours is celset's allocator for the nodes, nil if upstream's allocator is used.
	Ours *MeasuredAllocator
	// Writing is set when PreBind begins to write the pod's claims. Written is set when PreBind has written all of them.
	Writing, Written bool
}

// Clone implements [fwk.StateData]. It returns c itself. If a pod is tried with a cloned state, upstream's plugin replaces the
// devices for a node in the original state, too. So the values of preferences for these devices must be replaced there as well.
func (c *PodClaims) Clone() fwk.StateData { return c }

// ClaimsIn returns the claims in the cycle state, nil before PreFilter.
func ClaimsIn(state fwk.CycleState) *PodClaims {
	data, err := state.Read(ClaimsKey)
	if err != nil {
		return nil
	}
	claims, _ := data.(*PodClaims)
	return claims
}

// Resolver finds the claims of pods, and the constraints and preferences that apply to them in a profile.
type Resolver struct {
	Manager fwk.SharedDRAManager
	Checker *podclaims.Checker
	// Features holds the feature gates of the scheduler.
	Features plfeature.Features
	// Enabled is the feature gate of constraints and preferences.
	Enabled bool
	// Preference is the policy for claims without a preference, or "".
	Preference v1alpha1.PreferencePolicy
}

// Resolve returns the claims of a pod. Without dynamic resource allocation it returns no claims.
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

// All returns the unallocated claims, including the claim for extended resources.
func (c *PodClaims) All() []*resourceapi.ResourceClaim {
	if c.Extended == nil {
		return c.Unallocated
	}
	return append(slices.Clone(c.Unallocated), c.Extended)
}

// AllPrepared returns all unallocated claims prepared, including the claim for extended resources.
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

// Own returns the UID of the only unallocated claim, which may use its own pending devices again. It returns "" if there are
// several claims: another claim could get these devices.
func (c *PodClaims) Own() types.UID {
	if len(c.Unallocated) != 1 || c.Extended != nil {
		return ""
	}
	return c.Unallocated[0].UID
}

// ExtendedClaim returns the pod's claim for extended resources, nil if the pod requests none.
func (r *Resolver) ExtendedClaim(pod *v1.Pod) *resourceapi.ResourceClaim {
	if !r.Features.EnableDRAExtendedResource {
		return nil
	}
	return extended.Claim(pod, r.Manager.DeviceClassResolver().GetDeviceClass)
}

// WantsExtended reports whether the pod needs devices for extended resources. It is faster than ExtendedClaim.
func (r *Resolver) WantsExtended(pod *v1.Pod) bool {
	return r.Features.EnableDRAExtendedResource && pod.Status.ExtendedResourceClaimStatus == nil &&
		extended.Wants(pod, r.Manager.DeviceClassResolver().GetDeviceClass)
}

// Constrained returns the claims that a CEL constraint applies to, by reference or by a default of a class. If the gate is off,
// defaults don't apply, so that pods are scheduled as by a scheduler without celset.
func (r *Resolver) Constrained(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	hasDefaults := func(className string) bool {
		class, err := r.Manager.DeviceClasses().Get(className)
		return r.Enabled && err == nil && v1alpha1.HasDefaults(class)
	}
	return slices.DeleteFunc(slices.Clone(claims), func(claim *resourceapi.ResourceClaim) bool { return !v1alpha1.HasConstraints(claim, hasDefaults) })
}

// Prefers reports whether a preference applies to one of the claims. It returns false if the gate is off.
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

// ClaimsOf returns the existing claims of a pod, allocated or not.
func (r *Resolver) ClaimsOf(pod *v1.Pod) []*resourceapi.ResourceClaim {
	return preemption.ClaimsOf(pod, r.Claim)
}

// Claim returns a claim, nil if it does not exist.
func (r *Resolver) Claim(namespace, name string) *resourceapi.ResourceClaim {
	claim, err := r.Manager.ResourceClaims().Get(namespace, name)
	if err != nil {
		return nil
	}
	return claim
}
