// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// ClaimContent returns the fingerprint of everything in a claim and its classes that the result of an Allocate call depends on.
// ok is false if the fingerprint can't be computed.
func ClaimContent(classes v1alpha1.ClassGetter, claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
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

// isUnwritten reports whether the parameters are a Go object. The protocol buffer of a claim or class does not contain such an
// object, so the fingerprint would miss it. No API server sends such parameters.
func isUnwritten(configuration *resourceapi.DeviceConfiguration) bool {
	return configuration.Opaque != nil && configuration.Opaque.Parameters.Object != nil
}

func isOfClassAndUnwritten(configuration resourceapi.DeviceClassConfiguration) bool {
	return isUnwritten(&configuration.DeviceConfiguration)
}

// Classes caches each class at the first look-up. A lister may return a changed class at any time, but one attempt must use one
// version: cache keys are computed from the class before the search and for all nodes. Preparing a claim must use one, too.
type Classes struct {
	structured.DeviceClassLister
	// cachesErrors is true if failed look-ups are cached as well.
	cachesErrors bool
	mutex        sync.RWMutex
	byName       map[string]*seenClass
}

type seenClass struct {
	*resourceapi.DeviceClass
	err                         error
	hasDefaults, hasPreferences bool
}

// Get returns the version of the class that the first look-up found.
func (s *Classes) Get(name string) (*resourceapi.DeviceClass, error) {
	seen := s.see(name)
	return seen.DeviceClass, seen.err
}

// HasDefaults reports whether the class has default constraints. It is called often, so the answer is cached.
func (s *Classes) HasDefaults(name string) bool { return s.see(name).hasDefaults }

// HasPreferences reports whether the class defines preferences.
func (s *Classes) HasPreferences(name string) bool { return s.see(name).hasPreferences }

func (s *Classes) see(name string) *seenClass {
	s.mutex.RLock()
	seen := s.byName[name]
	s.mutex.RUnlock()
	if seen != nil {
		return seen
	}
	class, err := s.DeviceClassLister.Get(name)
	if err != nil {
		seen = &seenClass{err: err}
		if !s.cachesErrors {
			return seen
		}
	} else {
		seen = &seenClass{class, nil, v1alpha1.HasDefaults(class), v1alpha1.HasPreferences(class)}
	}
	return s.store(name, seen)
}

// store caches the class unless a class with this name is cached already. It returns the cached class.
func (s *Classes) store(name string, seen *seenClass) *seenClass {
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

// AddPrepared caches the versions of the classes that the claims were prepared with.
func (s *Classes) AddPrepared(prepared Prepared) {
	for _, c := range prepared {
		c.classes.mutex.RLock()
		for name, seen := range c.classes.byName {
			if seen.err == nil {
				s.store(name, seen)
			}
		}
		c.classes.mutex.RUnlock()
	}
}
