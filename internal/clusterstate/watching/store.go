// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watching

import (
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

// key is the namespace and name of an object.
type key struct{ namespace, name string }

// object is an object of the API.
type object interface {
	runtime.Object
	metav1.Object
}

// entry is an object in a store, with warnings about its content. The object must not be modified any more.
type entry struct {
	object   object
	warnings []string
}

// store holds the objects of one kind for a reflector.
type store struct {
	// trim returns the object without fields that no answer depends on, or nil to leave the object out.
	trim func(object) (object, error)
	// changed is called after an object has changed.
	changed func()

	mutex   sync.RWMutex
	entries map[key]entry
	// version counts the changes.
	version int
}

var _ cache.TransformingStore = &store{}

// Transformer implements [cache.TransformingStore]. The reflector trims the objects of a list as they arrive, so that the objects
// are never in memory with all their fields.
func (s *store) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(runtime.Object); ok {
			reading.Trim(o)
		}
		return obj, nil
	}
}

// newEntry trims an object. The entry has no object if the object is left out.
func (s *store) newEntry(obj any) (entry, error) {
	given, ok := obj.(object)
	if !ok {
		return entry{}, fmt.Errorf("%T is not an object", obj)
	}
	trimmed, err := s.trim(given)
	if err != nil {
		return entry{warnings: []string{err.Error()}}, nil
	}
	if trimmed == nil {
		return entry{}, nil
	}
	e := entry{object: trimmed}
	if slice, ok := trimmed.(*resourceapi.ResourceSlice); ok {
		one := &clusterstate.Objects{Slices: []*resourceapi.ResourceSlice{slice}}
		one.LimitQuantities()
		e.warnings = one.Warnings
	}
	return e, nil
}

// put stores the entry of an object, and returns false if the object is the same as before, except for its resource version.
func (s *store) put(into map[key]entry, obj any) (bool, error) {
	e, err := s.newEntry(obj)
	if err != nil {
		return false, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return false, err
	}
	at := key{accessor.GetNamespace(), accessor.GetName()}
	former, existed := s.entries[at]
	switch {
	case e.object == nil && e.warnings == nil:
		delete(into, at)
		return existed, nil
	case e.object != nil && former.object != nil:
		version := e.object.GetResourceVersion()
		e.object.SetResourceVersion(former.object.GetResourceVersion())
		if equality.Semantic.DeepEqual(e.object, former.object) {
			into[at] = former
			return false, nil
		}
		e.object.SetResourceVersion(version)
	}
	into[at] = e
	return true, nil
}

// Add implements [cache.ReflectorStore].
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements [cache.ReflectorStore].
func (s *store) Update(obj any) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	changed, err := s.put(s.entries, obj)
	s.note(changed)
	return err
}

// Delete implements [cache.ReflectorStore].
func (s *store) Delete(obj any) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := key{accessor.GetNamespace(), accessor.GetName()}
	_, existed := s.entries[at]
	delete(s.entries, at)
	s.note(existed)
	return nil
}

// Replace implements [cache.ReflectorStore].
func (s *store) Replace(all []any, _ string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entries, anyChanged := make(map[key]entry, len(all)), false
	for _, obj := range all {
		changed, err := s.put(entries, obj)
		if err != nil {
			return err
		}
		anyChanged = anyChanged || changed
	}
	anyChanged = anyChanged || len(entries) != len(s.entries)
	s.entries = entries
	s.note(anyChanged)
	return nil
}

// Resync implements [cache.ReflectorStore].
func (s *store) Resync() error { return nil }

// clear removes all objects.
func (s *store) clear() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.note(len(s.entries) > 0)
	s.entries = map[key]entry{}
}

// note records a change. The caller holds the mutex.
func (s *store) note(changed bool) {
	if changed {
		s.version++
		s.changed()
	}
}

// each calls f for each object, and then returns the warnings about objects.
func (s *store) each(f func(object)) (warnings []string) {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	for _, e := range s.entries {
		if e.object != nil {
			f(e.object)
		}
		warnings = append(warnings, e.warnings...)
	}
	return warnings
}

// trimmed is the trim function of most kinds.
func trimmed(o object) (object, error) {
	reading.Trim(o)
	return o, nil
}

// count returns the number of changes so far.
func (s *store) count() int {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.version
}
