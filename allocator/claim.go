// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// resolvedClaim is what is found out about a claim with CEL constraints, once for all nodes.
// That of other claims is nil.
type resolvedClaim struct {
	constraints func() (*definitions, error)
	content     func() (fingerprint.Sum, bool)
}

// resolvedClaims are remembered by pointer: the claims of a pod are the same objects for every
// node, and decoding and resolving them costs more than many a search.
type resolvedClaims struct {
	byClaim sync.Map // *resourceapi.ResourceClaim -> *resolvedClaim
	// byContent has those that were made for one node, which are as many as there are nodes, and
	// differ only in what a node has without a claim.
	byContent sync.Map // fingerprint.Sum -> *resolvedClaim
}

// resolved is nil for a claim without CEL constraints and preferences: those made for one node would
// pile up.
func (a *Allocator) resolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	if known, ok := a.resolvedClaims.byClaim.Load(claim); ok {
		return known.(*resolvedClaim)
	}
	isTemporary := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true"
	if !a.celConstraints || !v1alpha1.HasConstraints(claim, a.hasDefaults) && !a.hasPreference(claim) {
		if !isTemporary && len(claim.Spec.Devices.Config) > 0 {
			// Large configurations are looked through once, not for each node.
			a.resolvedClaims.byClaim.Store(claim, (*resolvedClaim)(nil))
		}
		return nil
	}
	if isTemporary {
		content, ok := contentOfTemporary(claim)
		if !ok {
			return a.newResolved(claim)
		}
		return a.resolvedAt(&a.resolvedClaims.byContent, content, claim)
	}
	return a.resolvedAt(&a.resolvedClaims.byClaim, claim, claim)
}

func (a *Allocator) resolvedAt(known *sync.Map, key any, claim *resourceapi.ResourceClaim) *resolvedClaim {
	if resolved, ok := known.Load(key); ok {
		return resolved.(*resolvedClaim)
	}
	resolved, _ := known.LoadOrStore(key, a.newResolved(claim))
	return resolved.(*resolvedClaim)
}

func (a *Allocator) newResolved(claim *resourceapi.ResourceClaim) *resolvedClaim {
	r := &resolvedClaim{constraints: sync.OnceValues(func() (*definitions, error) { return resolveDefinitions(a, claim) })}
	r.content = sync.OnceValues(func() (fingerprint.Sum, bool) {
		content := a.prepared.of(claim).contentOr(func() (fingerprint.Sum, bool) { return claimContent(a.classes, claim) })
		if content == nil {
			return fingerprint.Sum{}, false
		}
		return r.withPreferences(a, *content)
	})
	return r
}

// withPreferences adds to the content of a claim what its preferences depend on besides: policies know of other claims,
// and which policy it is may come from the options.
func (r *resolvedClaim) withPreferences(a *Allocator, content fingerprint.Sum) (fingerprint.Sum, bool) {
	definitions, err := r.definitions()
	if err != nil {
		return fingerprint.Sum{}, false
	}
	all := content[:]
	for _, p := range definitions.preferences {
		for _, shape := range p.shapes {
			ofShape, ok := a.shapes.idle().resolved(a.shapes.claimFor(shape)).fingerprint()
			if !ok {
				return fingerprint.Sum{}, false
			}
			all = append(all, ofShape[:]...)
		}
		if p.policy != nil {
			all = fingerprint.AppendPart(fingerprint.AppendPart(all, p.name), []byte(p.policy.Name))
		}
	}
	if len(all) == len(content) {
		return content, true
	}
	return fingerprint.Of(all), true
}

// contentOfTemporary is what a claim for extended resources is told by. Messages name it.
func contentOfTemporary(claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	content, ok := fingerprint.AppendMessage(fingerprint.AppendPart(fingerprint.AppendPart(nil, klog.KObj(claim).String()), v1alpha1.ContainersOf(claim)), &claim.Spec)
	return fingerprint.Of(content), ok
}

// hasDefaults reports whether a class has constraints by default. One that can't be read has none:
// whoever looks for its devices says so.
func (a *Allocator) hasDefaults(className string) bool {
	return a.defaults && a.classes.hasDefaults(className)
}

// hasPreference reports whether a preference is about the claim.
func (a *Allocator) hasPreference(claim *resourceapi.ResourceClaim) bool {
	switch prepared := a.prepared.of(claim); {
	case !a.preferences:
		return false
	case a.preference != "":
		return true
	case prepared != nil:
		return prepared.prefers
	default:
		return v1alpha1.HasPreference(claim, a.classes.hasPreferences)
	}
}

var noDefinitions = &definitions{}

// definitions are the CEL constraints that hold for the claim.
func (r *resolvedClaim) definitions() (*definitions, error) {
	if r == nil {
		return noDefinitions, nil
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
func claimContent(classes v1alpha1.ClassGetter, claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	for i := range claim.Spec.Devices.Config {
		if isUnwritten(&claim.Spec.Devices.Config[i].DeviceConfiguration) {
			return fingerprint.Sum{}, false
		}
	}
	memory := fingerprint.Memory.Get().(*[]byte)
	defer fingerprint.Memory.Put(memory)
	all, ok := fingerprint.AppendMessage(fingerprint.AppendPart((*memory)[:0], v1alpha1.ContainersOf(claim)), &claim.Spec)
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

func appendClass(to []byte, classes v1alpha1.ClassGetter, name string) ([]byte, bool) {
	class, err := classes.Get(name)
	if err != nil || slices.ContainsFunc(class.Spec.Config, isOfClassAndUnwritten) {
		return to, false
	}
	return fingerprint.AppendMessage(to, &class.Spec)
}

// isUnwritten reports whether parameters are a Go object, of which the protocol buffer of a
// claim or class has nothing. No API server sends those.
func isUnwritten(configuration *resourceapi.DeviceConfiguration) bool {
	return configuration.Opaque != nil && configuration.Opaque.Parameters.Object != nil
}

func isOfClassAndUnwritten(configuration resourceapi.DeviceClassConfiguration) bool {
	return isUnwritten(&configuration.DeviceConfiguration)
}

// seenClasses has each class as it was when it was first asked for. Behind a lister classes
// change at any time, but one attempt must see one of them: what an answer is kept under is
// found out from the class before, and for all nodes at once. So must a claim that is prepared.
type seenClasses struct {
	structured.DeviceClassLister
	// keepsErrors: that there is no class is remembered, too.
	keepsErrors bool
	mutex       sync.RWMutex
	byName      map[string]*seenClass
}

type seenClass struct {
	*resourceapi.DeviceClass
	err                         error
	hasDefaults, hasPreferences bool
}

// Get returns the class.
func (s *seenClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	seen := s.see(name)
	return seen.DeviceClass, seen.err
}

// hasDefaults reports whether the class has CEL constraints by default. It is asked often.
func (s *seenClasses) hasDefaults(name string) bool { return s.see(name).hasDefaults }

// hasPreferences reports whether the class defines preferences.
func (s *seenClasses) hasPreferences(name string) bool { return s.see(name).hasPreferences }

func (s *seenClasses) see(name string) *seenClass {
	s.mutex.RLock()
	seen := s.byName[name]
	s.mutex.RUnlock()
	if seen != nil {
		return seen
	}
	class, err := s.DeviceClassLister.Get(name)
	if err != nil {
		seen = &seenClass{err: err}
		if !s.keepsErrors {
			return seen
		}
	} else {
		seen = &seenClass{class, nil, v1alpha1.HasDefaults(class), v1alpha1.HasPreferences(class)}
	}
	return s.keep(name, seen)
}

// keep returns the class that was seen first.
func (s *seenClasses) keep(name string, seen *seenClass) *seenClass {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if first := s.byName[name]; first != nil {
		return first
	}
	if s.byName == nil {
		s.byName = make(map[string]*seenClass)
	}
	s.byName[name] = seen
	return seen
}

// seed has the classes be those with which claims were prepared.
func (s *seenClasses) seed(prepared Prepared) {
	for _, c := range prepared {
		c.classes.mutex.RLock()
		for name, seen := range c.classes.byName {
			if seen.err == nil {
				s.keep(name, seen)
			}
		}
		c.classes.mutex.RUnlock()
	}
}
