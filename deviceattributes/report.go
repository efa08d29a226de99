// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"cmp"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// A Report describes the effect of the objects in one call of [Enricher.Enrich]. It is safe for concurrent use.
type Report struct {
	// Objects has an entry for each object, in the order of their names.
	Objects []ObjectReport

	slices  []*resourceapi.ResourceSlice
	results []*result
	// pools maps a pool to the indexes of its slices in slices. Only slices of the newest generation are present. It is built on
	// first use.
	pools func() map[pool][]int
}

// An ObjectReport describes the effect of one object. Slices of a pool that have an older generation are not counted.
type ObjectReport struct {
	// Object is the object. It must not be modified.
	Object *v1alpha1.DeviceAttributes
	// Rejection is the reason why the object has no effect, or nil.
	Rejection *Rejection
	// Devices is the number of devices of the driver on the selected nodes.
	Devices int
	// Attributes is the number of attributes that devices got. An attribute that several objects define equally counts for each.
	Attributes int
	// UnmatchedRows are the keys of rows that match no device.
	UnmatchedRows Examples[string]
	// DevicesWithoutRow are the devices that match no row of the table, as <driver>/<pool>/<device>. A driver may have devices that
	// need no row, so that these devices are no mistake.
	DevicesWithoutRow Examples[string]
	// FailedExpressions are the evaluations that failed.
	FailedExpressions Examples[FailedExpression]
	// Conflicts are the attributes that another object, or this one, defines with a different value.
	Conflicts Examples[Conflict]
	// OverLimit are the devices that got no attributes because they would exceed Kubernetes' limits, as <driver>/<pool>/<device>.
	OverLimit Examples[string]
}

// A Rejection is the reason why an object has no effect.
type Rejection struct {
	// Reason is a reason of the condition Accepted (see package wellknown).
	Reason string
	// Message names the field, the mistake, and the correction.
	Message string
}

// A FailedExpression is an expression that failed on a device.
type FailedExpression struct {
	// Attribute is the name of the computed attribute, without domain.
	Attribute string
	// Device identifies the device as <driver>/<pool>/<device>.
	Device string
	// Message describes the failure in one line.
	Message string
}

// A Conflict is an attribute that a device does not get, because objects define it with different values.
type Conflict struct {
	// Attribute is the name of the attribute.
	Attribute resourceapi.QualifiedName
	// Device identifies the device as <driver>/<pool>/<device>.
	Device string
	// Object is the name of another object that defines the attribute. It is the name of the same object if no other one does.
	Object string
}

// Examples counts findings and holds the first ones, at most [v1alpha1.MaxStatusExamples].
type Examples[T any] struct {
	Count int
	First []T
}

func (e *Examples[T]) add(one T) {
	e.Count++
	if len(e.First) < v1alpha1.MaxStatusExamples {
		e.First = append(e.First, one)
	}
}

// merge adds the findings of a slice. The first ones are then the smallest ones, so that they don't depend on the order of slices.
func (e *Examples[T]) merge(of Examples[T], compare func(a, b T) int) {
	e.Count += of.Count
	if len(of.First) == 0 {
		return
	}
	all := append(slices.Clip(e.First), of.First...)
	slices.SortFunc(all, compare)
	e.First = all[:min(len(all), v1alpha1.MaxStatusExamples)]
}

// Object returns the report of an object.
func (r *Report) Object(name string) (of ObjectReport, ok bool) {
	at, ok := slices.BinarySearchFunc(r.Objects, name, func(o ObjectReport, name string) int { return cmp.Compare(o.Object.Name, name) })
	if !ok {
		return ObjectReport{}, false
	}
	return r.Objects[at], true
}

// Origin returns the name of the object that defines an attribute of a device. ok is false for an attribute of the driver and for
// an attribute that the device lacks. If several objects define the attribute equally, Origin returns the first name.
func (r *Report) Origin(driver, poolName, deviceName string, attribute resourceapi.QualifiedName) (object string, ok bool) {
	for _, at := range r.pools()[pool{driver, poolName}] {
		for i := range r.slices[at].Spec.Devices {
			if r.slices[at].Spec.Devices[i].Name == deviceName {
				object, ok = r.results[at].origins[i][attribute]
				return object, ok
			}
		}
	}
	return "", false
}

type pool struct{ driver, name string }

func poolOf(slice *resourceapi.ResourceSlice) pool {
	return pool{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// newReport adds up the results of the slices. results has a nil entry for each slice that no object changes.
func newReport(objects []standing, all []*resourceapi.ResourceSlice, results []*result) *Report {
	newest := make(map[pool]int64)
	for i, slice := range all {
		if results[i] != nil {
			newest[poolOf(slice)] = slice.Spec.Pool.Generation
		}
	}
	for _, slice := range all {
		if generation, ok := newest[poolOf(slice)]; ok {
			newest[poolOf(slice)] = max(generation, slice.Spec.Pool.Generation)
		}
	}
	isCurrent := func(i int) bool {
		return results[i] != nil && all[i].Spec.Pool.Generation == newest[poolOf(all[i])]
	}
	sums := make(map[*compiled]*sum, len(objects))
	for _, o := range objects {
		sums[o.compiled] = newSum(o)
	}
	for i, result := range results {
		if !isCurrent(i) {
			continue
		}
		for _, f := range result.findings {
			sums[f.object].add(f)
		}
	}
	r := &Report{slices: all, results: results, Objects: make([]ObjectReport, len(objects))}
	for i, o := range objects {
		r.Objects[i] = sums[o.compiled].report()
	}
	r.pools = sync.OnceValue(func() map[pool][]int {
		pools := make(map[pool][]int, len(newest))
		for i := range all {
			if isCurrent(i) {
				pools[poolOf(all[i])] = append(pools[poolOf(all[i])], i)
			}
		}
		return pools
	})
	return r
}

// A sum is the report of an object while results are added.
type sum struct {
	of      ObjectReport
	table   *table
	matched []bool
}

func newSum(o standing) *sum {
	s := &sum{of: ObjectReport{Object: o.source, Rejection: o.rejection}}
	if o.rejection == nil && o.table != nil {
		s.table, s.matched = o.table, make([]bool, len(o.table.keys))
	}
	return s
}

func (s *sum) add(f *finding) {
	s.of.Devices += f.devices
	s.of.Attributes += f.attributes
	for _, row := range f.rows {
		s.matched[row] = true
	}
	s.of.DevicesWithoutRow.merge(f.withoutRow, cmp.Compare[string])
	s.of.OverLimit.merge(f.overLimit, cmp.Compare[string])
	s.of.FailedExpressions.merge(f.failed, func(a, b FailedExpression) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Attribute, b.Attribute))
	})
	s.of.Conflicts.merge(f.conflicts, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Attribute, b.Attribute), cmp.Compare(a.Object, b.Object))
	})
}

func (s *sum) report() ObjectReport {
	for row, isMatched := range s.matched {
		if !isMatched {
			s.of.UnmatchedRows.add(s.table.keys[row])
		}
	}
	return s.of
}
