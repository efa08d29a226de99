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
// found out from the class before, and for all nodes at once.
type seenClasses struct {
	structured.DeviceClassLister
	mutex  sync.RWMutex
	byName map[string]*seenClass
}

type seenClass struct {
	*resourceapi.DeviceClass
	hasDefaults, hasPreferences bool
}

// Get returns the class. That there is none is not remembered.
func (s *seenClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	seen, err := s.see(name)
	if err != nil {
		return nil, err
	}
	return seen.DeviceClass, nil
}

// hasDefaults tells whether the class has CEL constraints by default. It is asked often.
func (s *seenClasses) hasDefaults(name string) bool {
	seen, err := s.see(name)
	return err == nil && seen.hasDefaults
}

// hasPreferences tells whether the class defines preferences.
func (s *seenClasses) hasPreferences(name string) bool {
	seen, err := s.see(name)
	return err == nil && seen.hasPreferences
}

func (s *seenClasses) see(name string) (*seenClass, error) {
	if seen := s.get(name); seen != nil {
		return seen, nil
	}
	class, err := s.DeviceClassLister.Get(name)
	if err != nil {
		return nil, err
	}
	return s.keep(name, class), nil
}

// keep returns the class that was seen first.
func (s *seenClasses) keep(name string, class *resourceapi.DeviceClass) *seenClass {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if seen := s.byName[name]; seen != nil {
		return seen
	}
	if s.byName == nil {
		s.byName = make(map[string]*seenClass)
	}
	seen := &seenClass{class, v1alpha1.HasDefaults(class), v1alpha1.HasPreferences(class)}
	s.byName[name] = seen
	return seen
}

// seed has the classes be those with which claims were prepared.
func (s *seenClasses) seed(prepared Prepared) {
	for _, c := range prepared {
		for name, class := range c.classes.byName {
			if class.err == nil {
				s.keep(name, class.DeviceClass)
			}
		}
	}
}

func (s *seenClasses) get(name string) *seenClass {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.byName[name]
}
