// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wellknown defines the names that programs of celset write into Kubernetes objects: annotations, labels, types and
// reasons of conditions, reasons and actions of events, Leases and field managers. Each program has its own file.
// docs/labels.md explains each name. A test compares that page with this package.
//
//	meta.IsStatusConditionTrue(group.Status.Conditions, wellknown.ConditionMisconfigured)
//
// Each constant begins with the type of the name: Annotation, Label, Condition, Reason, Action, Lease or FieldManager.
// Annotations that are part of a format are in other packages below apis: v1alpha1.NodeSetAnnotation and
// setscores.QuantitiesAnnotation.
package wellknown
