// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// Names of the metrics of DeviceAttributes objects.
const (
	attributesName         = subsystem + "_device_attributes"
	attributesObjectsName  = subsystem + "_device_attributes_objects"
	attributesProblemsName = subsystem + "_device_attributes_problems"
)

// Values of the labels "state" and "reason".
const (
	objectAccepted   = "accepted"
	objectRejected   = "rejected"
	unmatchedRow     = "unmatched_row"
	failedExpression = "failed_expression"
	conflict         = "conflict"
)

// Attributes is the effect of the DeviceAttributes objects of the cluster.
type Attributes struct {
	// Accepted and Rejected are numbers of objects.
	Accepted, Rejected int
	// Set is the number of attributes that devices got.
	Set int
	// UnmatchedRows, FailedExpressions and Conflicts are the sums over all objects. A conflict between two objects counts twice.
	UnmatchedRows, FailedExpressions, Conflicts int
}

// newAttributes shows the effect of DeviceAttributes objects. It shows nothing until the first object exists.
func newAttributes() *collector[Attributes] {
	set := newDesc(attributesName, "Number of attributes that devices got from DeviceAttributes objects.")
	objects := newDesc(attributesObjectsName, "Number of DeviceAttributes objects, by state. A rejected object has no effect.", "state")
	problems := newDesc(attributesProblemsName,
		"Number of problems of DeviceAttributes objects, by reason: a row without a device, an expression that failed on a device, or an attribute that another object defines with a different value. The status of the object has the first ones.",
		"reason")
	return &collector[Attributes]{descs: []*metrics.Desc{set, objects, problems}, show: func(a Attributes, value func(*metrics.Desc, float64, ...string)) {
		value(set, float64(a.Set))
		value(objects, float64(a.Accepted), objectAccepted)
		value(objects, float64(a.Rejected), objectRejected)
		value(problems, float64(a.UnmatchedRows), unmatchedRow)
		value(problems, float64(a.FailedExpressions), failedExpression)
		value(problems, float64(a.Conflicts), conflict)
	}}
}

// ShowAttributes sets the effect to show.
func (m *Metrics) ShowAttributes(a Attributes) { m.attributes.setSource(a) }

// ObserveEnrichment must be called before attributes of DeviceAttributes objects are added to the devices of all ResourceSlices.
// After that, end must be called.
func (m *Metrics) ObserveEnrichment() (end func()) {
	start := m.now()
	return func() { m.enrichments.Observe(m.now().Sub(start).Seconds()) }
}
