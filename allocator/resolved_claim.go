// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// resolvedClaim is what is found out about a claim with CEL constraints, once for all nodes.
// That of other claims is nil.
type resolvedClaim struct {
	constraints func() (map[int]*definition, error)
	content     func() (fingerprint.Sum, bool)
}

// resolvedClaims are remembered by pointer: the claims of a pod are the same objects for every
// node, and decoding and resolving them costs more than many a search.
type resolvedClaims struct {
	byClaim sync.Map // *resourceapi.ResourceClaim -> *resolvedClaim
}

// resolved is nil for a claim without CEL constraints: those made for one node would
// pile up.
func (a *Allocator) resolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	if !a.celConstraints || !v1alpha1.HasReference(claim) {
		return nil
	}
	if known, ok := a.resolvedClaims.byClaim.Load(claim); ok {
		return known.(*resolvedClaim)
	}
	resolved, _ := a.resolvedClaims.byClaim.LoadOrStore(claim, &resolvedClaim{
		constraints: sync.OnceValues(func() (map[int]*definition, error) { return resolveDefinitions(a, claim) }),
		content:     sync.OnceValues(func() (fingerprint.Sum, bool) { return claimContent(a.classes, claim) }),
	})
	return resolved.(*resolvedClaim)
}

// definitions are the CEL constraints by their index in the claim's constraints.
func (r *resolvedClaim) definitions() (map[int]*definition, error) {
	if r == nil {
		return nil, nil
	}
	return r.constraints()
}

// fingerprint is that of all that an answer depends on. It is false if that can't be told.
func (r *resolvedClaim) fingerprint() (fingerprint.Sum, bool) {
	if r == nil {
		return fingerprint.Sum{}, false
	}
	return r.content()
}

// claimContent is the part of a claim and its classes that an answer depends on. It is false
// if that can't be told.
func claimContent(classes structured.DeviceClassLister, claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	for i := range claim.Spec.Devices.Config {
		if isUnwritten(&claim.Spec.Devices.Config[i].DeviceConfiguration) {
			return fingerprint.Sum{}, false
		}
	}
	memory := fingerprint.Memory.Get().(*[]byte)
	defer fingerprint.Memory.Put(memory)
	all, ok := fingerprint.AppendMessage((*memory)[:0], &claim.Spec)
	for _, r := range claim.Spec.Devices.Requests {
		if r.Exactly != nil && ok {
			all, ok = appendClass(all, classes, r.Exactly.DeviceClassName)
		}
		for _, sub := range r.FirstAvailable {
			if ok {
				all, ok = appendClass(all, classes, sub.DeviceClassName)
			}
		}
	}
	*memory = all
	return fingerprint.Of(all), ok
}

func appendClass(to []byte, classes structured.DeviceClassLister, name string) ([]byte, bool) {
	class, err := classes.Get(name)
	if err != nil || slices.ContainsFunc(class.Spec.Config, isOfClassAndUnwritten) {
		return to, false
	}
	return fingerprint.AppendMessage(to, &class.Spec)
}

// isUnwritten tells whether parameters are a Go object, of which the protocol buffer of a
// claim or class has nothing. No API server sends those.
func isUnwritten(configuration *resourceapi.DeviceConfiguration) bool {
	return configuration.Opaque != nil && configuration.Opaque.Parameters.Object != nil
}

func isOfClassAndUnwritten(configuration resourceapi.DeviceClassConfiguration) bool {
	return isUnwritten(&configuration.DeviceConfiguration)
}
