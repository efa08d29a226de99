// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wellknown defines the names that programs of celset write into objects of Kubernetes:
// annotations, labels, types of conditions, reasons of conditions and events, actions of events, Leases and field managers.
// There is a file for each program. docs/labels.md says what each name means; a test compares the page with this package.
//
//	meta.IsStatusConditionTrue(group.Status.Conditions, wellknown.ConditionMisconfigured)
//
// A name begins with what it names: Annotation, Label, Condition, Reason, Action, Lease or FieldManager. Other packages below
// apis have the annotations that are part of their format: v1alpha1.NodeSetAnnotation and setscores.QuantitiesAnnotation.
package wellknown
