// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite runs the test cases of YAML files of the kind [ExpressionTest]. A case names devices, the devices in use, and a
// claim, a pod, a PodGroup or a Placement. It states the expected devices, nodes or clusters, or the expected reason.
//
//	results := suite.Run(ctx, paths, suite.Options{Features: features})
//	results.Print(os.Stdout)
//
// The steps for each file:
//
//  1. [read] decodes the file strictly and finds the position of each mistake.
//  2. [input] reads the objects of a case: files, Markdown pages, inline objects, machines, and claims for the devices in use.
//  3. [ask] gets the answer from the function that the commands explain and check use: fit.Run, gang.Run, placements.Decide or
//     check.Run.
//  4. [judge] compares the answer with the expectations.
//  5. With the option Update, [update] writes the answers into the file.
package suite
