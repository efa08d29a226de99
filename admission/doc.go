// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission finds mistakes in CEL device constraints and preferences before an object is stored. The objects are
// ResourceClaims, ResourceClaimTemplates and DeviceClasses of resource.k8s.io/v1, and PodGroups. Users then see a mistake when
// they write the object, and not later in the events of a waiting pod.
//
// [Checker] has only the checks. It rejects an object if the scheduler would report an error on every node, and uses the
// scheduler's code: package apis/celset/v1alpha1 decodes and resolves, and package cel/device compiles. Package webhook runs
// the checks in a server, and "kubectl celset check" prints their results:
//
//	checker, err := admission.NewChecker(admission.Options{})
//	verdict, err := checker.Claim(ctx, claim, classes)
//
// # Errors
//
//   - a definition that can't be decoded, has an invalid name, is empty, too long or
//     duplicate, with or without a reference to it;
//   - an expression that does not compile: in a claim if a constraint refers to it, in a
//     class always;
//   - a reference in distinctAttribute, with an invalid name, to unknown requests, or to a name
//     that is not defined or that two classes define differently;
//   - a derived attribute in the domain of the constraints;
//   - a definition under another driver, and a reference in a domain that differs from celset.dev in a
//     character or two;
//   - more devices than a claim can have, for a request or for all together;
//   - a preference that can't be decoded, is duplicate, has no type or a field of another type,
//     names unknown requests, or does not compile to an int;
//   - a node set constraint that can't be decoded, is duplicate, or does not compile, also in a class that a
//     PodGroup refers to.
//
// A missing class may be created later, and a class that can't be read may be valid. So neither is an error, but a warning
// ([Verdict.Undecided]).
//
// # Warnings
//
//   - a definition without a reference;
//   - an expression that depends on the order of devices;
//   - an expression whose evaluation may exceed the scheduler's cost limit, in the worst case for the
//     requested number of devices;
//   - an expression that the search can't analyze, with more than [ManySets] sets;
//   - a preference for requests that leave no choice;
//   - a pod with a claim that has a constraint or a preference, if the pod's scheduler does not support it.
//
// None of these is an error, because the cost limits are worst-case estimates: most devices are smaller than the API allows.
//
// # Updates
//
// A stored object may be older than this webhook. So an update is rejected only for mistakes that the stored object does not
// have. An update that does not change the specification is not checked, and neither is an object that is being deleted.
package admission
