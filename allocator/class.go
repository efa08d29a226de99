// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// seenClasses has each class as it was when it was first asked for. Behind a lister classes
// change at any time, but one attempt must see one of them: what an answer is kept under is
// found out from the class before, and for all nodes at once.
type seenClasses struct {
	structured.DeviceClassLister
	mutex  sync.RWMutex
	byName map[string]*resourceapi.DeviceClass
}

// Get returns the class. That there is none is not remembered.
func (s *seenClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	if seen := s.get(name); seen != nil {
		return seen, nil
	}
	class, err := s.DeviceClassLister.Get(name)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if seen := s.byName[name]; seen != nil {
		return seen, nil
	}
	if s.byName == nil {
		s.byName = make(map[string]*resourceapi.DeviceClass)
	}
	s.byName[name] = class
	return class, nil
}

func (s *seenClasses) get(name string) *resourceapi.DeviceClass {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.byName[name]
}
