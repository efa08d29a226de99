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

// PodClaims holds the claims of a pod, and the findings of the scheduling cycle about them. PreFilter resolves the claims
// once. The other extension points read PodClaims from the cycle state.
type PodClaims struct {
	// Unallocated holds the unallocated claims, without the claim for extended resources.
	Unallocated []*resourceapi.ResourceClaim
	// Allocated holds the allocated claims.
	Allocated []*resourceapi.ResourceClaim
	// Extended is the claim for extended resources, nil if the pod requests none. Upstream's Filter makes a different claim for
	// each node, but the claim's constraints must be known before Filter.
	Extended *resourceapi.ResourceClaim
	// Err is the reason why the pod can't use one of its claims, even if all devices are free. If Err is set, the other fields
	// are incomplete.
	Err error

	// Prepared has the compiled unallocated claims. IsPrepared is set after they were looked up.
	Prepared   allocator.Prepared
	IsPrepared bool
	// Attempt is the scheduling attempt that the guard admitted. It is nil if all claims are allocated.
	Attempt *guard.Attempt
	// Ours is celset's allocator for this cycle. It is nil if upstream's allocator is used.
	Ours *MeasuredAllocator
	// Writing is set when PreBind begins to write the pod's claims. Written is set when PreBind has written all of them.
	Writing, Written bool
}

// Clone implements [fwk.StateData]. It returns c itself: if Filter runs with a cloned state, upstream's plugin replaces the
// devices found for a node in the original state, too. The preference values of these devices must then be replaced there as
// well.
func (c *PodClaims) Clone() fwk.StateData { return c }

// ClaimsIn returns the PodClaims in the cycle state. It returns nil before PreFilter.
func ClaimsIn(state fwk.CycleState) *PodClaims {
	data, err := state.Read(ClaimsKey)
	if err != nil {
		return nil
	}
	claims, _ := data.(*PodClaims)
	return claims
}

// Resolver finds the claims of pods, and the constraints and preferences that apply to these claims in a profile.
type Resolver struct {
	Manager fwk.SharedDRAManager
	Checker *podclaims.Checker
	// Features holds the values of upstream's feature gates.
	Features plfeature.Features
	// Enabled is the value of the feature gate of constraints and preferences.
	Enabled bool
	// Preference is the profile's default policy for claims without a preference, or "".
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

// AllPrepared returns the compiled unallocated claims, including the claim for extended resources.
func (c *PodClaims) AllPrepared(ctx context.Context, p preparation.Claims) (allocator.Prepared, error) {
	if c.IsPrepared && c.Extended == nil {
		return c.Prepared, nil
	}
	return preparation.All(ctx, p, c.All())
}

// UIDs returns the UIDs of the pod's claims, without the claim for extended resources.
func (c *PodClaims) UIDs() []types.UID {
	var uids []types.UID
	for _, claim := range slices.Concat(c.Unallocated, c.Allocated) {
		uids = append(uids, claim.UID)
	}
	return uids
}

// Own returns the UID of the pod's only unallocated claim. That claim may get its own pending devices again. Own returns "" if
// the pod has several unallocated claims, because another of them could get those devices.
func (c *PodClaims) Own() types.UID {
	if len(c.Unallocated) != 1 || c.Extended != nil {
		return ""
	}
	return c.Unallocated[0].UID
}

// ExtendedClaim returns the claim that serves the pod's extended resources, or nil if the pod requests none.
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

// Constrained returns those claims to which a CEL constraint applies: the claim refers to it, or a class has it as a default.
// If the gate is off, defaults don't apply, so that pods are scheduled as by a scheduler without celset.
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

// ClaimsOf returns the existing claims that the pod uses, allocated or not.
func (r *Resolver) ClaimsOf(pod *v1.Pod) []*resourceapi.ResourceClaim {
	return preemption.ClaimsOf(pod, r.Claim)
}

// Claim returns the claim with this name, or nil if it does not exist.
func (r *Resolver) Claim(namespace, name string) *resourceapi.ResourceClaim {
	claim, err := r.Manager.ResourceClaims().Get(namespace, name)
	if err != nil {
		return nil
	}
	return claim
}
