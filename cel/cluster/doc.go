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
// managedCluster is a map that looks like the JSON of the object: with its names, omitted fields, and quantities and times as
// strings. Nothing is converted in advance, so reading one field has the cost of one field. [Of] also accepts ClusterProfiles and
// other objects.
//
//	managedCluster.status.version.kubernetes == "v1.30.0"
//	managedCluster.metadata.?labels["version"].orValue("").matches('^1\\.(30|31)\\.\\d+$')
//
// managedCluster.scores(name) returns the scores of the AddOnPlacementScore with the name in the cluster's namespace, as maps
// with the keys name, value and quantity. quantity is read from the annotation celset.dev/quantities (a JSON object from score
// name to quantity), and is the value by default. It is an int for plain whole numbers and a string otherwise. A missing object
// is an error, and so is an object past its validUntil.
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
// now() returns the time in steps of ten seconds ([Moment]). A verdict reports whether it depends on the time. The [Hub] provides
// the time, so that the same input has the same result.
//
//	now() - timestamp(managedCluster.metadata.creationTimestamp) > duration("24h")
//	now().getDayOfWeek("Europe/Berlin") in [0, 6]
//
// The libraries are CEL's standard functions, optionals, strings, math, sets, bindings and two-variable comprehensions, and
// Kubernetes' lists, regex, URLs, quantity, IP, CIDR, format and semver (with normalization: semver(s, true)).
//
// # Limits
//
// Expressions are ANDed and evaluated in order until one is not true. One evaluation may cost [cel.DefaultCostLimit], and all
// evaluations on one cluster [ClusterCostLimit]. [Environment.Expensive] reports expressions that may exceed the limit of
// one evaluation on a cluster whose lists, maps and texts have 32 elements each.
//
// [setscores]: https://pkg.go.dev/github.com/celset/celset/apis/setscores
package cluster
