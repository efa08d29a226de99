// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster selects clusters: by labels, by claims and by CEL expressions
// over one cluster, the variable "managedCluster" of an Open Cluster Management
// Placement.
//
//	environment, err := cluster.NewEnvironment(cel.Config{})
//	selector, err := environment.Compile(placement.Spec.Predicates[0].RequiredClusterSelector, nil)
//	verdict, err := selector.Match(ctx, cluster.New(managedCluster), cluster.Hub{Scores: scores})
//
// # What an expression sees
//
// managedCluster is a map that looks like the JSON of the object: its names, its
// omitted fields, its quantities and times as strings. Nothing is converted: an
// expression that reads one field costs one field. Besides ManagedClusters,
// [Of] takes ClusterProfiles and any other object.
//
//	managedCluster.status.version.kubernetes == "v1.30.0"
//	managedCluster.metadata.?labels["version"].orValue("").matches('^1\\.(30|31)\\.\\d+$')
//
// managedCluster.scores(name) lists the scores of the AddOnPlacementScore of that
// name in the cluster's namespace, as maps with the keys name, value and quantity.
// quantity is what the annotation celset.dev/quantities says (a JSON object from
// score name to quantity), else the value: an int for plain whole numbers, else a
// string. No such object, and one past its validUntil, is an error.
//
//	managedCluster.scores("default").exists(s, s.name == "cpuAvailable" && s.quantity > 4)
//	managedCluster.scores("default").exists(s, s.name == "memAvailable" &&
//	    quantity(s.quantity).isGreaterThan(quantity("100Mi")))
//
// managedCluster.sets(class, constraint, devices) is how many more sets of so many devices fit, as the
// cluster publishes it ([setscores]): a map from now, packed and idle to ints. No such shape is an error,
// and so is what scores() fails for.
//
//	managedCluster.sets("gpu.example.com", "block8", 8).now >= 4
//	managedCluster.sets("gpu.example.com", "block", 16).?packed.orValue(0) > 0
//
// <string>.parseJSON(), also parseJSON(<string>), returns what a JSON text says.
// Numbers written without fraction and exponent are ints, others doubles.
//
//	'{"H100": [{"count": 2}]}'.parseJSON().H100[0].count == 2
//
// now() is the time in steps of ten seconds ([Moment]). A verdict says whether it depends on
// it. The time is that of the [Hub], so that the same input has the same answer.
//
//	now() - timestamp(managedCluster.metadata.creationTimestamp) > duration("24h")
//	now().getDayOfWeek("Europe/Berlin") in [0, 6]
//
// The libraries are CEL's standard functions, optionals, strings, math, sets,
// bindings and two-variable comprehensions, and Kubernetes' lists, regex, URLs,
// quantity, IP, CIDR, format and semver (with normalization: semver(s, true)).
//
// # Limits
//
// Expressions are ANDed and evaluated in order until one is not true. One
// evaluation may cost [cel.DefaultCostLimit], all on one cluster
// [ClusterCostLimit]. [Environment.Expensive] names expressions that may cost more than
// the former on a cluster whose lists, maps and texts have 32 elements each.
//
// [setscores]: https://pkg.go.dev/github.com/celset/celset/apis/setscores
package cluster
