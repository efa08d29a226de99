// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission finds mistakes in CEL device constraints and preferences before they are stored: in
// ResourceClaims, ResourceClaimTemplates and DeviceClasses of resource.k8s.io/v1, and PodGroups. Users
// then read about them where they write them, and not in the events of a pod that waits.
//
// [Checker] is the check alone. What it refuses is what the scheduler would call an error
// for every node, found by the same code: package apis/celset/v1alpha1 decodes and
// resolves, package cel/device compiles. Package webhook hosts it on a server, and "kubectl celset
// check" prints what it finds:
//
//	checker, err := admission.NewChecker(admission.Options{})
//	verdict, err := checker.Claim(ctx, claim, classes)
//
// # What is refused
//
//   - a definition that can't be decoded, has an invalid name, is empty, too long or there
//     twice, whether something refers to it or not;
//   - an expression that does not compile: of a claim if a constraint refers to it, of a
//     class always;
//   - a reference in distinctAttribute, of an invalid name, to unknown requests, to a name
//     that is defined nowhere or by two classes differently;
//   - a derived attribute in the domain of the constraints;
//   - a definition under another driver, and a reference in a domain that differs from celset.dev in a
//     character or two;
//   - more devices than a claim can have, for a request or for all together;
//   - a preference that can't be decoded, is there twice, has no type or another field than that of its type,
//     names unknown requests, or does not compile to an int;
//   - a node set constraint that can't be decoded, is there twice, or does not compile, also one of a class that a
//     PodGroup refers to.
//
// A class that does not exist may be created later, and one that can't be read may be
// fine: what depends on it is a warning ([Verdict.Undecided]).
//
// # What is warned of
//
// Definitions that nothing refers to; expressions that speak of the order of devices;
// those of which one evaluation may cost more than the scheduler allows for the number of
// devices asked for, in the worst case; those that the search can't read together with
// more than [ManySets] sets; preferences for requests that leave nothing to choose; pods that
// use a claim with a constraint or a preference under the name of a scheduler that does not know
// it. The scheduler has no limit on estimates, and most devices are smaller than the API allows:
// none of these is refused.
//
// # Updates
//
// What is stored was admitted once, if only by a cluster without this webhook. An update
// is refused for mistakes that the stored object does not have; one that does not touch
// the specification is not looked at, and neither is an object that is being deleted.
package admission
