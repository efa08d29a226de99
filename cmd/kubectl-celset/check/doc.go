// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check reports on the constraints of claims, templates and device classes before a pod uses them. For each constraint
// it reports whether the expression compiles, the attributes that it reads, the cost of an evaluation, the number of possible
// sets of devices, and how early the search can use each conjunct. It runs the same code as the scheduler.
//
//	report, err := check.Run(ctx, state, check.Options{Count: 4, Features: features})
//	report.Valid()       // nothing is wrong
//	report.Print(os.Stdout)
package check
