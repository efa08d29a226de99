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

// ClaimContent returns the fingerprint of everything in a claim and its classes that answers depend on. ok is false if there is
// no such fingerprint.
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

// isUnwritten reports whether the parameters are a Go object, which the protocol buffer of a claim or class omits. No API server
// sends such parameters.
func isUnwritten(configuration *resourceapi.DeviceConfiguration) bool {
	return configuration.Opaque != nil && configuration.Opaque.Parameters.Object != nil
}

func isOfClassAndUnwritten(configuration resourceapi.DeviceClassConfiguration) bool {
	return isUnwritten(&configuration.DeviceConfiguration)
}

// Classes remembers each class as first seen. A lister may return changed classes at any time, but one attempt must use one
// version. Keys of the cache are computed from the class before the answer, and once for all nodes. Preparing a claim must use
// one version, too.
type Classes struct {
	structured.DeviceClassLister
	// cachesErrors is true if missing classes are remembered, too.
	cachesErrors bool
	mutex        sync.RWMutex
	byName       map[string]*seenClass
}

type seenClass struct {
	*resourceapi.DeviceClass
	err                         error
	hasDefaults, hasPreferences bool
}

// Get returns the class as it was first seen.
func (s *Classes) Get(name string) (*resourceapi.DeviceClass, error) {
	seen := s.see(name)
	return seen.DeviceClass, seen.err
}

// HasDefaults reports whether the class has CEL constraints by default. It is called often.
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

// store stores the class unless there is one of that name, and returns the stored class.
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

// AddPrepared adds the classes that the claims were prepared with.
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
