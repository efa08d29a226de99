// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster selects clusters by labels, by claims and by CEL expressions over one cluster, the variable "managedCluster" of
// an Open Cluster Management Placement.
//
//	environment, err := cluster.NewEnvironment(cel.Config{})
//	selector, err := environment.Compile(ctx, placement.Spec.Predicates[0].RequiredClusterSelector, nil)
//	verdict, err := selector.Match(ctx, cluster.New(managedCluster), cluster.Hub{Scores: scores})
//
// # Variables and functions
//
// managedCluster is a map that looks like the JSON of the object: fields have their JSON names, empty fields are omitted, and
// quantities and times are strings. Fields are converted only when an expression reads them, so an expression pays only for the
// fields that it reads. [Of] also accepts ClusterProfiles and other objects.
//
//	managedCluster.status.version.kubernetes == "v1.30.0"
//	managedCluster.metadata.?labels["version"].orValue("").matches('^1\\.(30|31)\\.\\d+$')
//
// managedCluster.scores(name) returns the scores of the AddOnPlacementScore with the name in the cluster's namespace. Each
// score is a map with the keys name, value and quantity. The annotation celset.dev/quantities (a JSON object from score name to
// quantity) provides the quantity. Without an entry, quantity is the value. The quantity is an int for a plain whole number and
// a string otherwise. It is an error if the object is missing or past its validUntil.
//
//	managedCluster.scores("default").exists(s, s.name == "cpuAvailable" && s.quantity > 4)
//	managedCluster.scores("default").exists(s, s.name == "memAvailable" &&
//	    quantity(s.quantity).isGreaterThan(quantity("100Mi")))
//
// managedCluster.sets(class, constraint, devices) returns how many more sets of that many devices fit, as the cluster publishes
// it ([setscores]). The result is a map from now, packed and idle to ints. An unpublished set shape is an error. The errors of
// scores() apply, too.
//
//	managedCluster.sets("gpu.example.com", "block8", 8).now >= 4
//	managedCluster.sets("gpu.example.com", "block", 16).?packed.orValue(0) > 0
//
// <string>.parseJSON(), or parseJSON(<string>), returns the value of a JSON text. Numbers written without fraction and exponent
// are ints, others doubles.
//
//	'{"H100": [{"count": 2}]}'.parseJSON().H100[0].count == 2
//
// now() returns the time in steps of ten seconds ([Moment]). The [Hub] provides the time, so that the same input has the same
// result. A [Verdict] reports whether it depends on the time.
//
//	now() - timestamp(managedCluster.metadata.creationTimestamp) > duration("24h")
//	now().getDayOfWeek("Europe/Berlin") in [0, 6]
//
// The libraries are CEL's standard functions, optionals, strings, math, sets, bindings and two-variable comprehensions, and
// Kubernetes' lists, regex, URLs, quantity, IP, CIDR, format and semver (with normalization: semver(s, true)).
//
// # Limits
//
// A selector is true if all its expressions are true. They are evaluated in order until one is not true. One evaluation may
// cost [cel.DefaultCostLimit], and all evaluations on one cluster together [ClusterCostLimit]. [Environment.Expensive] reports
// expressions that may exceed the limit of one evaluation on a cluster whose lists, maps and texts have 32 elements each.
//
// [setscores]: https://pkg.go.dev/github.com/celset/celset/apis/setscores
package cluster
