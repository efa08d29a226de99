// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

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
